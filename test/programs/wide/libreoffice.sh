#!/bin/sh
# LibreOffice without a window: a text document to PDF, to its own format and back to text, a table calculated.
# Packages: libreoffice-writer-nogui libreoffice-calc-nogui

. "$(dirname "$0")/../lib.sh"
begin 420
need soffice
need unzip
version "$(soffice --version 2>/dev/null)"

{
    echo '<html><body><h1>A document</h1>'
    lines 600 | awk '{ printf "<p>Paragraph %d says <b>%s</b> and <i>%s</i>, %s times.</p>\n", NR, $2, $3, $1
        if (NR % 50 == 0) { print "<table border=1><tr><td>one</td><td>" $1 "</td></tr></table>" } }'
    echo '</body></html>'
} >"$dir/data/document.html"
awk 'BEGIN { for (i = 1; i <= 800; i++) {
    printf "%d;%d;\"=A%d*B%d+SUM(A$1:A%d)\";\"=IF(MOD(A%d,7)=0,\"\"seven\"\",TEXT(B%d,\"\"0.00\"\"))\"\n",
        i, i * 7919 % 1000, i, i, i, i, i } }' >"$dir/data/table.csv"

office() {
    soffice "-env:UserInstallation=file://$PWD/profile" --headless --norestore --nologo "$@" >>office.log 2>&1
}

work() {
    SOURCE_DATE_EPOCH=1700000000
    export SOURCE_DATE_EPOCH
    office --convert-to odt:writer8 --infilter='HTML (StarWriter)' --outdir . "$dir/data/document.html"
    office --convert-to pdf:writer_pdf_Export --outdir . document.odt
    office --convert-to txt:Text --outdir . document.odt
    office --convert-to ods --infilter='CSV:59,34,UTF8,1,,0,false,true,false,false,false,-1' --outdir . \
        "$dir/data/table.csv"
    office --convert-to csv:'Text - txt - csv (StarCalc)':44,34,76,1 --outdir . table.ods
    unzip -p document.odt content.xml | sha256sum
    sha256sum document.txt table.csv
    tail -n 2 table.csv
    head -c 5 document.pdf
    grep -ac '/Type */Page\b' document.pdf || true
    quiet office.log
}

prove soffice.bin soffice --version
compare work
