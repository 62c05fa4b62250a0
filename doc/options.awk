# options.awk - writes the manual page: pamalloc.7.in, with the list of options in the place of @OPTIONS@.
#
#     awk -v conf=FILE -f options.awk options.def pamalloc.7.in >pamalloc.7
#
# A row of options.def is OPTION(name, type, default, least, greatest, words, sentence), over one line or more.

# Splits a row at the commas that are outside of quotes, into field[1] and so on, without blanks and quotes.
function row_split(text, i, letter, quoted, n) {
    n = 1
    field[1] = ""
    for (i = 1; i <= length(text); i++) {
        letter = substr(text, i, 1)
        if (letter == "\"") {
            quoted = !quoted
        } else if (letter == "," && !quoted) {
            field[++n] = ""
        } else if (letter != " " || (quoted || field[n] != "")) {
            field[n] = field[n] letter
        }
    }
    return n
}

# A size as the help text has it.
function size_text(number, unit) {
    for (unit = 0; unit < 4 && number != 0 && number % 1024 == 0; unit++) {
        number /= 1024
    }
    return number substr(" KMGT", unit + 1, unit > 0)
}

function value_text(number, words) {
    if (field[2] == "SIZE") {
        return size_text(number + 0)
    }
    if (field[2] == "CHOICE") {
        split(field[6], words, "|")
        return words[number + 1]
    }
    return number == "UINT64_MAX" ? "18446744073709551615" : number
}

function row_write(words, count, i) {
    if (field[2] == "FLAG") {
        print ".It Cm " field[1] " Ns Op = Ns Cm 0 | 1"
    } else if (field[2] == "CHOICE") {
        count = split(field[6], words, "|")
        printf ".It Cm %s Ns = Ns Cm %s", field[1], words[1]
        for (i = 2; i <= count; i++) {
            printf " | %s", words[i]
        }
        print ""
    } else {
        print ".It Cm " field[1] " Ns = Ns Ar " (field[2] == "SIZE" ? "size" : "number")
    }
    print toupper(substr(field[7], 1, 1)) substr(field[7], 2) "."
    if (field[2] == "NUMBER" || field[2] == "SIZE") {
        print "From " value_text(field[4]) " to " value_text(field[5]) "."
    }
    print "Default:"
    print ".Cm " value_text(field[3]) " ."
}

function options_write(i) {
    for (i = 1; i <= rows; i++) {
        if (row_split(row[i]) != 7) {
            print "options.awk: not seven fields: " row[i] >"/dev/stderr"
            exit 1
        }
        row_write()
    }
}

FILENAME ~ /\.def$/ {
    if ($0 ~ /^OPTION\(/) {
        row[++rows] = substr($0, 8)
        open = 1
    } else if (open) {
        row[rows] = row[rows] " " $0
    }
    if (open && row[rows] ~ /"\)$/) {
        sub(/\)$/, "", row[rows])
        open = 0
    }
    next
}

/^@OPTIONS@$/ {
    options_write()
    next
}

{
    gsub(/@CONF@/, conf)
    print
}
