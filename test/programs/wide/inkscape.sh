#!/bin/sh
# Inkscape in batch: a drawing to a picture, to PDF, to plain SVG, with filters, gradients, text and Boolean operations.
# Packages: inkscape

. "$(dirname "$0")/../lib.sh"
begin 300
need inkscape
version "$(inkscape --version 2>/dev/null)"

{
    echo '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="400" height="300">'
    echo '<defs><linearGradient id="g"><stop offset="0" stop-color="#f40"/><stop offset="1" stop-color="#04f"/>'
    echo '</linearGradient><filter id="f"><feGaussianBlur stdDeviation="3"/></filter></defs>'
    echo '<rect id="r" width="400" height="300" fill="url(#g)"/><g filter="url(#f)">'
    awk 'BEGIN { for (i = 0; i < 300; i++) {
        printf "<circle cx=\"%d\" cy=\"%d\" r=\"%d\" fill=\"#%06x\" opacity=\"0.5\"/>\n",
            i * 37 % 400, i * 53 % 300, 3 + i % 17, i * 7919 % 16777216 } }'
    echo '</g>'
    awk 'BEGIN { printf "<path id=\"p\" fill=\"none\" stroke=\"#000\" d=\"M 0 0"
        for (i = 0; i < 500; i++) { printf " L %d %d", i * 71 % 400, i * 29 % 300 }
        print " z\"/>" }'
    echo '<text x="30" y="150" font-size="40" font-family="sans-serif">pages are exact</text></svg>'
} >"$dir/data/drawing.svg"

work() {
    inkscape --export-type=png --export-width=800 --export-filename=drawing.png "$dir/data/drawing.svg" 2>messages
    inkscape --export-type=svg --export-plain-svg --export-filename=plain.svg "$dir/data/drawing.svg" 2>>messages
    inkscape --export-type=svg --export-filename=path.svg --actions='select-by-id:r,p;path-exclusion' \
        "$dir/data/drawing.svg" 2>>messages
    inkscape --query-all "$dir/data/drawing.svg" 2>>messages | sha256sum
    sha256sum drawing.png plain.svg path.svg | sort
    quiet messages
}

prove inkscape inkscape --version
compare work
same_files drawing.png
