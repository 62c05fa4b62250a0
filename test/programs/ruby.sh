#!/bin/sh
# ruby: hashes, strings, threads, forked children, garbage collection with compaction.
# Packages: ruby

. "$(dirname "$0")/lib.sh"
begin 120
need ruby
version "$(ruby --version)"

prove ruby ruby -e 1

cat >"$dir/data/work.rb" <<'RUBY'
require 'digest'
require 'json'
require 'zlib'
require 'set'

def digest(thing) = Digest::SHA256.hexdigest(thing.to_s)[0, 16]

def churn(seed)
  draw = Random.new(seed)
  kept = {}
  40_000.times do
    key = draw.rand(2000)
    if kept.key?(key) && draw.rand < 0.4
      kept.delete(key)
    else
      kept[key] = 'k' * draw.rand(1 + (1 << draw.rand(12)))
    end
  end
  digest(kept.sort.map { |k, v| [k, v.length] })
end

puts "threads #{Array.new(6) { |i| Thread.new { churn(i) } }.map(&:value).join(' ')}"
words = Array.new(60_000) { |i| (i * 48_271 % 99_991).to_s(36) }
puts "words #{digest(words.sort.group_by { |w| w[0] }.transform_values(&:size))} #{words.to_set.size}"
tree = JSON.parse(JSON.generate(words.each_slice(50).map { |slice| { slice[0] => slice } }))
puts "json #{digest(tree)} #{digest(Marshal.load(Marshal.dump(tree)))}"
text = words.join(' ')
puts "regex #{digest(text.gsub(/[a-f]+/) { |m| m.upcase.reverse })} #{text.scan(/\b\w{2}\b/).size}"
puts "zlib #{Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text}"
puts "big #{digest(3**20_000 * 7**10_000)}"
GC.start
GC.compact if GC.respond_to?(:compact)
puts "children #{Array.new(3) { |i|
  reader, writer = IO.pipe
  fork { reader.close; writer.write(churn(i + 10)); writer.close; exit!(0) }
  writer.close
  answer = reader.read
  Process.wait
  answer + $?.exitstatus.to_s
}.join(' ')}"
RUBY

compare ruby "$dir/data/work.rb"
