#!/bin/sh
# ImageMagick draws, scales, blurs, composes and converts pictures: the sums of their pixels.
# Packages: imagemagick

. "$(dirname "$0")/../lib.sh"
begin 180
need convert
need identify
version "$(convert -version)"

work() {
    convert -size 500x400 gradient:red-blue -swirl 90 -depth 8 swirl.png
    convert -size 400x400 -seed 7 plasma:fractal -depth 8 plasma.png
    convert swirl.png plasma.png -gravity center -compose overlay -composite -depth 8 both.png
    convert both.png -resize 800x800 -unsharp 0x2 -colorspace gray -depth 8 gray.png
    convert both.png -blur 0x6 -rotate 30 -background none -shave 20x20 +repage -quality 90 turned.jpg
    convert both.png -colors 64 -dither FloydSteinberg few.gif
    convert both.png -crop 100x100 +repage +append strip.png
    convert swirl.png plasma.png few.gif -resize 200x200! -morph 5 frames.miff
    convert both.png -fx '(r+g*2-b)/2' -edge 2 -depth 8 edge.png
    convert both.png -distort Perspective '0,0 20,10 400,0 380,20 400,400 390,390 0,400 5,380' -depth 8 distorted.png
    montage swirl.png plasma.png gray.png -tile 3x1 -geometry 150x150+4+4 -depth 8 montage.png
    command compare -metric AE swirl.png swirl.png null: 2>&1
    echo
    for picture in swirl plasma both gray edge strip distorted montage; do
        identify -format '%f %wx%h %#\n' "$picture.png"
    done
    identify -format '%f %wx%h %#\n' turned.jpg few.gif frames.miff
}

prove "$(basename "$(command -v convert)")" convert -version

# PNG files carry the time of their making; what counts are the pixels.
OMP_NUM_THREADS=4
export OMP_NUM_THREADS
compare work
