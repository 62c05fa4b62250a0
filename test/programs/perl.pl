# Hashes, strings, regular expressions, closures, interpreter threads and forked children; prints sums that depend on
# the seed alone.

use strict;
use warnings;
use threads;
use Digest::SHA qw(sha256_hex);
use Storable qw(freeze thaw dclone);

my $x = 20240229;

sub draw { $x = $x * 16807 % 2147483647; return $x % $_[0] }

sub digest { return substr sha256_hex(join ",", @_), 0, 16 }

sub churn {
    my ($seed, $steps) = @_;
    $x = $seed + 1;
    my %kept;
    for my $step (1 .. $steps) {
        my $key = draw(5000);
        if (exists $kept{$key} && draw(2)) {
            delete $kept{$key};
        } else {
            $kept{$key} = "k" x draw(1 << draw(12));
        }
    }
    return digest(map { "$_:" . length $kept{$_} } sort { $a <=> $b } keys %kept);
}

print "hash ", churn(7, 200000), "\n";

my @words = map { join "", map { chr 97 + draw(26) } 1 .. 1 + draw(12) } 1 .. 60000;
print "sort ", digest(sort @words), "\n";

my $text = join " ", @words;
my %count;
$count{$1}++ while $text =~ /\b(\w{3,5})\b/g;
(my $turned = $text) =~ s/(\w+)/scalar reverse $1/ge;
print "regex ", digest(map { "$_$count{$_}" } sort keys %count), " ", digest($turned), "\n";

my $tree = {};
for my $word (@words[0 .. 9999]) {
    my $node = $tree;
    $node = $node->{$_} //= {} for split //, $word;
    $node->{end}++;
}
my $copy = thaw(freeze(dclone($tree)));
sub count_nodes { my $sum = 1; ref $_ and $sum += count_nodes($_) for values %{ $_[0] }; return $sum }
print "tree ", count_nodes($copy), "\n";

my @closures = map { my $n = $_; my @pad = (1) x ($n % 50); sub { $n + @pad } } 1 .. 20000;
my $sum = 0;
$sum += $_->() for @closures;
print "closures $sum\n";

# Each thread clones the interpreter, so another thread frees what this one allocated.
my @threads = map { my $n = $_; threads->create(sub { churn($n, 30000) }) } 1 .. 6;
print "threads ", join(" ", map { $_->join } @threads), "\n";

for my $n (1 .. 4) {
    my $child = open my $pipe, "-|";
    die "fork: $!" unless defined $child;
    if (!$child) { print churn($n + 50, 30000), "\n"; exit 0 }
    my $line = <$pipe>;
    close $pipe or die "the child ended with $?";
    print "child $line";
}
