#!/bin/sh
# GIMP with its windows on a virtual screen: a script makes a picture, filters it, saves and reads it, and quits.
# Packages: gimp xvfb

. "$(dirname "$0")/../lib.sh"
begin 300
need gimp
need Xvfb
version "$(gimp --version 2>/dev/null)"

cat >"$dir/data/work.scm" <<'SCM'
(define (work folder)
  (let* ((image (car (gimp-image-new 400 300 RGB)))
         (layer (car (gimp-layer-new image 400 300 RGB-IMAGE "one" 100 LAYER-MODE-NORMAL))))
    (gimp-image-insert-layer image layer 0 0)
    (gimp-context-set-foreground '(250 40 10))
    (gimp-context-set-background '(10 40 250))
    (gimp-drawable-fill layer FILL-FOREGROUND)
    (gimp-drawable-edit-gradient-fill layer GRADIENT-LINEAR 0 FALSE 1 0 FALSE 0 0 399 299)
    (gimp-image-select-ellipse image CHANNEL-OP-REPLACE 50 50 200 150)
    (gimp-drawable-invert layer FALSE)
    (gimp-selection-none image)
    (plug-in-gauss RUN-NONINTERACTIVE image layer 12 12 0)
    (plug-in-edge RUN-NONINTERACTIVE image layer 2 1 0)
    (gimp-image-scale image 600 450)
    (gimp-image-rotate image ROTATE-90)
    (gimp-xcf-save RUN-NONINTERACTIVE image layer (string-append folder "/one.xcf") "one.xcf")
    (let* ((again (car (gimp-file-load RUN-NONINTERACTIVE (string-append folder "/one.xcf") "one.xcf")))
           (flat (car (gimp-image-flatten again))))
      (file-bmp-save RUN-NONINTERACTIVE again flat (string-append folder "/one.bmp") "one.bmp")
      (gimp-image-delete again))
    (gimp-image-delete image)
    (gimp-quit 1)))
SCM

screen_ready() {
    [ -s screen ]
}

work() {
    # The screen is no part of what is tested.
    : >screen
    serve screen.log env LD_PRELOAD= Xvfb -displayfd 3 -screen 0 1024x768x24 -nolisten tcp 3>screen
    screen=$server
    await 20 screen_ready || fail "no screen"
    DISPLAY=:$(cat screen)
    XDG_CONFIG_HOME=$PWD/config XDG_CACHE_HOME=$PWD/cache XDG_DATA_HOME=$PWD/share
    export DISPLAY XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME
    serve messages gimp --new-instance --no-splash --no-data --no-fonts --batch-interpreter=plug-in-script-fu-eval \
        --batch "(begin (load \"$dir/data/work.scm\") (work \"$PWD\"))"
    gimp=$server
    mapped_children "$gimp"
    mapped "$gimp"
    wait "$gimp" || fail "gimp ended with $?"
    sha256sum one.bmp
    quiet messages
    kill -TERM "$screen"
    wait "$screen" || true
}

prove gimp gimp --version
compare work
same_files one.bmp
