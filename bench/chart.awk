# Draws one chart from CSV to SVG; chart.sh runs it and documents the CSV. `file` is the name in error messages. The variable
# CHART_CHOSEN of the environment has the columns to draw, one per line; all if it is empty. Requires LC_ALL=C.

# Series of a server have the same colour in every chart, others the next unused one.
function colour_of(name) {
    if (name ~ /redis/) return 2
    if (name ~ /ember/ && !taken[1]) return 1
    if (name ~ /valkey/) return 3
    if (name ~ /floor/) return 4
    return 0
}

function fail(what) {
    printf "%s:%d: %s\n", file, FNR, what >"/dev/stderr"
    failed = 1
    exit 1
}

function escaped(text) {
    gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); gsub(/"/, "\\&quot;", text)
    return text
}

# Counts the characters of a UTF-8 text: all bytes except continuation bytes.
function characters(text) {
    gsub(/[\200-\277]/, "", text)
    return length(text)
}

# Splits a line of CSV into cells[1], …; returns their number.
function cells_of(line,    count, letter, quoted, at) {
    count = 1; cells[1] = ""; quoted = 0
    for (at = 1; at <= length(line); at++) {
        letter = substr(line, at, 1)
        if (quoted && letter == "\"" && substr(line, at + 1, 1) == "\"") { cells[count] = cells[count] "\""; at++ }
        else if (letter == "\"") quoted = !quoted
        else if (letter == "," && !quoted) cells[++count] = ""
        else cells[count] = cells[count] letter
    }
    if (quoted) fail("unclosed quote")
    return count
}

function is_figure(text) { return text ~ /^[0-9]+(\.[0-9]+)?$/ }

# Parses "low–high" into range_low and range_high; returns false for other text.
function is_range(text,    at) {
    at = index(text, "–")
    if (!at) return 0
    range_low = substr(text, 1, at - 1); range_high = substr(text, at + length("–"))
    return is_figure(range_low) && is_figure(range_high) && range_low + 0 <= range_high + 0
}

function read_cell(row, column, text,    at) {
    label[row, column] = text
    if (text == "-" || text == "") { kind[row, column] = "none"; return }
    if (is_figure(text)) { kind[row, column] = "figure"; low[row, column] = high[row, column] = text + 0 }
    else if (is_range(text)) {
        kind[row, column] = "range"; low[row, column] = range_low + 0; high[row, column] = range_high + 0
    } else {
        at = index(text, " (")
        if (!at || substr(text, length(text)) != ")" || !is_figure(substr(text, 1, at - 1)) ||
            !is_range(substr(text, at + 2, length(text) - at - 2)))
            fail("\"" text "\" is neither a figure, nor a range (1–2), nor a figure with its range (1.5 (1–2))")
        kind[row, column] = "spread"; figure[row, column] = substr(text, 1, at - 1) + 0
        low[row, column] = range_low + 0; high[row, column] = range_high + 0
        if (high[row, column] < figure[row, column]) fail("\"" text "\" is outside its range")
    }
    if (high[row, column] > most) most = high[row, column]
}

# Returns a figure of five or more digits with commas.
function readable(text,    result) {
    if (text !~ /^[0-9][0-9][0-9][0-9][0-9]+$/) return text
    while (length(text) > 3) {
        result = "," substr(text, length(text) - 2) result
        text = substr(text, 1, length(text) - 3)
    }
    return text result
}

# Selects the columns to draw: the chosen ones, or all except `setup`.
function choose_columns(count,    wanted, names, at, column) {
    if (ENVIRON["CHART_CHOSEN"] == "") {
        if (cells[count] == "setup") count--
        for (column = 2; column <= count; column++) place[++series] = column
    } else {
        wanted = split(ENVIRON["CHART_CHOSEN"], names, "\n")
        for (at = 1; at <= wanted; at++) {
            for (column = 2; column <= count && cells[column] != names[at]; column++);
            if (column > count) fail("no column \"" names[at] "\"")
            place[++series] = column
        }
    }
    if (series < 1) fail("no column of figures")
    if (series > 6) fail(series " columns of figures: the maximum is 6")
    for (at = 1; at <= series; at++) name[at] = cells[place[at]]
}

FNR == 1 {
    title = file
    sub(/.*\//, "", title); sub(/\.csv$/, "", title)
}

/\r/ { fail("carriage return") }

!columns && /^# / {
    if (sub(/^# title: */, "")) title = $0
    else if (sub(/^# unit: */, "")) unit = $0
    else if (sub(/^# line: */, "")) {
        if (!is_figure($1)) fail("\"" $1 "\" is not a figure for a line")
        line = $1 + 0; has_line = 1; line_label = $0; sub(/^[^ ]* */, "", line_label)
        if (line > most) most = line
    } else fail("expected title, unit or line")
    next
}

{
    count = cells_of($0)
    if (!columns) { columns = count; choose_columns(count); next }
    if (count != columns) fail(count " cells, but the header has " columns)
    if (cells[1] == "") fail("group without a name")
    group[++rows] = cells[1]
    for (at = 1; at <= series; at++) read_cell(rows, at, cells[place[at]])
}

END {
    if (failed) exit 1
    if (!columns) fail("no header")
    if (!rows) fail("no figures below the header")
    if (most <= 0) fail("no figure above 0")

    # The axis has four to eight steps, each of 1, 2 or 5 times a power of ten.
    for (step = 1; step * 8 < most; step *= 10);
    while (step / 10 * 8 >= most) step /= 10
    if (step / 5 * 8 >= most) step /= 5
    else if (step / 2 * 8 >= most) step /= 2
    for (decimals = 0; step * 10 ^ decimals < 0.999; decimals++);
    for (steps = 1; steps * step < most * 0.9999; steps++);

    # Text widths are estimated: characters of 12 pixels height are at most 6.6 pixels wide on average.
    letter = 6.6; bar = 15; between = 3; apart = 14; width = 760
    for (row = 1; row <= rows; row++) {
        if (characters(group[row]) > longest) longest = characters(group[row])
        for (at = 1; at <= series; at++) {
            label[row, at] = kind[row, at] == "figure" ? readable(label[row, at]) : label[row, at]
            if (characters(label[row, at]) > widest) widest = characters(label[row, at])
        }
    }
    left = 20 + longest * letter
    right = width - 24 - widest * letter
    if (right - left < 200) { FNR = 1; fail("names and figures are too long for a chart") }
    scale = (right - left) / (steps * step)

    # The legend, with as many names per line as fit.
    for (at = 1; at <= series; at++) {
        colour[at] = colour_of(name[at])
        if (taken[colour[at]]) colour[at] = 0
        if (colour[at]) taken[colour[at]] = 1
    }
    for (at = 1; at <= series; at++) {
        for (free = 1; !colour[at] && free <= 6; free++) if (!taken[free]) colour[at] = free
        taken[colour[at]] = 1
    }
    top = 46 + (unit != "" ? 18 : 0)
    x = 16
    for (at = 1; at <= series; at++) {
        needed = 34 + characters(name[at]) * letter
        if (x > 16 && x + needed > width) { x = 16; top += 20 }
        legend = legend sprintf("<rect class=\"c%d\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\"/>\n", \
            colour[at], x, top - 10)
        legend = legend sprintf("<text x=\"%d\" y=\"%d\">%s</text>\n", x + 18, top, escaped(name[at]))
        x += needed
    }
    if (has_line) {
        needed = 40 + characters(line_label) * letter
        if (x > 16 && x + needed > width) { x = 16; top += 20 }
        legend = legend sprintf("<path class=\"line\" d=\"M%d %dh18\"/>\n<text x=\"%d\" y=\"%d\">%s</text>\n", \
            x, top - 4, x + 24, top, escaped(line_label))
    }
    top += 18
    bottom = top + rows * (series * (bar + between) - between + apart)
    height = bottom + 30

    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", \
        width, height, width, height
    printf "<title>%s</title>\n", escaped(title)
    print "<style>"
    print "text{font:12px system-ui,-apple-system,\"Segoe UI\",sans-serif;fill:#1f2328}"
    print ".title{font-size:15px;font-weight:600}.quiet{fill:#59636e}.page{fill:#fff}"
    print ".grid{stroke:#d8dee4}.axis{stroke:#8c959f}"
    print ".line{stroke:#1f2328;stroke-width:1.5;stroke-dasharray:4 3}.reach{stroke:#1f2328;stroke-width:1.5;fill:none}"
    print ".value{stroke:#fff;stroke-width:3px;stroke-linejoin:round;paint-order:stroke}"
    print ".c1{fill:#d9541e}.c2{fill:#3d6fb4}.c3{fill:#2a8f7a}.c4{fill:#8c959f}.c5{fill:#8a5cc0}.c6{fill:#b98900}"
    print "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}.page{fill:#0d1117}"
    print ".grid{stroke:#2b323b}.axis{stroke:#6e7681}.line,.reach{stroke:#e6edf3}.value{stroke:#0d1117}"
    print ".c1{fill:#f0763f}.c2{fill:#6c9ee0}.c3{fill:#45b59c}.c4{fill:#7d8590}.c5{fill:#ac84e0}.c6{fill:#d6a520}}"
    print "</style>"
    printf "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", width, height
    printf "<text class=\"title\" x=\"16\" y=\"26\">%s</text>\n", escaped(title)
    if (unit != "") printf "<text class=\"quiet\" x=\"16\" y=\"44\">%s</text>\n", escaped(unit)
    printf "%s", legend

    for (at = 0; at <= steps; at++) {
        x = left + at * step * scale
        printf "<path class=\"%s\" d=\"M%.1f %dV%d\"/>\n", at ? "grid" : "axis", x, top - 4, bottom - 4
        printf "<text class=\"quiet\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", \
            x, bottom + 12, readable(sprintf("%." decimals "f", at * step))
    }
    y = top + apart / 2 - 4
    for (row = 1; row <= rows; row++) {
        middle = y + (series * (bar + between) - between) / 2 + 4
        printf "<text text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left - 8, middle, escaped(group[row])
        for (at = 1; at <= series; at++) {
            shown = kind[row, at]
            x = left
            if (shown == "none") label[row, at] = "not measured"
            else {
                length_ = (shown == "spread" ? figure[row, at] : low[row, at]) * scale
                printf "<rect class=\"c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", \
                    colour[at], left, y, length_, bar
                x = left + high[row, at] * scale
            }
            if (shown == "range")
                printf "<rect class=\"c%d\" opacity=\".45\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", \
                    colour[at], left + length_, y, x - left - length_, bar
            if (shown == "spread")
                printf "<path class=\"reach\" d=\"M%.1f %.1fv7m0 -3.5H%.1fm0 -3.5v7\"/>\n", \
                    left + low[row, at] * scale, y + bar / 2 - 3.5, x
            values = values sprintf("<text class=\"value\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", \
                x + 6, y + bar - 3, escaped(label[row, at]))
            y += bar + between
        }
        y += apart - between
    }
    if (has_line) printf "<path class=\"line\" d=\"M%.1f %dV%d\"/>\n", left + line * scale, top - 4, bottom - 4
    # Values are drawn last, with an outline, so that the line does not cross them.
    printf "%s</svg>\n", values
}
