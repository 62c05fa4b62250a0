#!/bin/sh
# ffmpeg makes a test picture and a tone, encodes them with several threads, filters and decodes: every frame's sum.
# Packages: ffmpeg

. "$(dirname "$0")/../lib.sh"
begin 240
need ffmpeg
need ffprobe
version "$(ffmpeg -version)"

ff() {
    ffmpeg -nostdin -hide_banner -loglevel error -y "$@"
}

work() {
    ff -f lavfi -i testsrc2=size=320x240:rate=25:duration=4 -f lavfi -i sine=frequency=440:duration=4 -threads 4 \
        -c:v mpeg4 -q:v 4 -c:a aac -flags +bitexact -fflags +bitexact -map_metadata -1 picture.mkv
    ff -i picture.mkv -f framemd5 - | sha256sum
    ff -i picture.mkv -vf 'scale=640:480,hflip,boxblur=3,drawgrid=w=40:h=40,split[a][b];[a]negate[c];[c][b]hstack' \
        -frames:v 40 -f framemd5 - | tail -n 2
    ff -i picture.mkv -an -c:v ffv1 -level 3 -slices 4 -threads 4 -flags +bitexact -fflags +bitexact lossless.mkv
    ff -threads 4 -i lossless.mkv -f framemd5 - | sha256sum
    ff -i picture.mkv -af 'aecho=0.8:0.9:40:0.4,atempo=1.5' -f md5 -
    ff -i picture.mkv -vf fps=2 -flags +bitexact picture%02d.png
    sha256sum picture0*.png
    ffprobe -v error -show_entries stream=codec_name,width,height,nb_read_frames -count_frames -of csv picture.mkv
    if ffmpeg -v quiet -encoders | grep -q libx264; then
        ff -i picture.mkv -an -c:v libx264 -preset fast -threads 2 -x264-params threads=2 -f framecrc - | sha256sum
    fi
}

prove ffmpeg ffmpeg -version
compare work
same_files picture.mkv lossless.mkv
