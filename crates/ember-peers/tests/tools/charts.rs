//! Charts are drawn from CSV files: the charts in the documents equal the current output of the script, and show the
//! figures of their files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// Returns the CSV files of the documents' charts.
fn csv_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/charts")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "csv")).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn run(arguments: &[&str], folder: Option<&Path>) -> Output {
    let mut command = Command::new(root().join("bench/chart.sh"));
    command.args(arguments).env_remove("CHART_FOLDER");
    if let Some(folder) = folder {
        command.env("CHART_FOLDER", folder);
    }
    command.output().unwrap()
}

/// Returns the script's output for a CSV text and selected columns, or its error message.
fn draw(csv: &str, columns: &[&str]) -> Result<String, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ember-charts-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("figures.csv");
    fs::write(&path, csv).unwrap();
    let output = run(&[&[path.to_str().unwrap()], columns].concat(), None);
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    let place = format!("{}:", path.display());
    if said.is_empty() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(said.trim_end().replace(&place, ""))
    }
}

/// Returns the widths of the bars of a chart, in order.
fn bars(svg: &str) -> Vec<f64> {
    let widths = svg.lines().filter(|line| line.starts_with("<rect class=\"c") && !line.contains("rx="));
    widths
        .map(|line| line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn the_charts_match_their_figures() {
    let folder = std::env::temp_dir().join(format!("ember-charts-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for path in csv_files() {
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let output = run(&[], Some(&folder));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let kept = root().join("docs/charts");
    assert_eq!(names(&folder), names(&kept), "run make charts, and remove charts without figures");
    for name in names(&kept) {
        assert!(read(folder.join(&name)) == read(kept.join(&name)), "docs/charts/{name}: run make charts");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_page_shows_each_chart_and_has_its_figures_in_a_table() {
    let page = read(root().join("docs/benchmarks.md")) + &read(root().join("docs/vectors.md"));
    let readme = read(root().join("README.md"));
    let table_lines = page.lines().filter(|line| line.starts_with('|'));
    let cells: BTreeSet<&str> = table_lines.flat_map(|line| line.split(['|', ',']).map(str::trim)).collect();
    for path in csv_files() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_shown = page.contains(&format!("](charts/{name}.svg)"))
            || readme.contains(&format!("](docs/charts/{name}.svg)"));
        assert!(is_shown, "{name}.svg is not shown");
        let text = read(&path);
        for setting in ["# title: ", "# unit: "] {
            assert!(text.lines().any(|line| line.starts_with(setting)), "{name}.csv has no {setting}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
            // The name of a group may be quoted; figures never are.
            let figures = line.rsplit_once('"').map_or(line, |(_, figures)| figures).split(',').skip(1);
            for figure in figures.filter(|figure| *figure != "-") {
                assert!(cells.contains(figure), "{name}.csv: {figure} is in no table of the page");
            }
        }
    }
}

#[test]
fn a_chart_has_title_unit_legend_axis_and_values() {
    let csv = "# title: Speed & size\n# unit: seconds\n# line: 2 the limit\n\
               server,redis,ember\nload,4,1\n\"save, then load\",12345,2.5\n";
    let svg = draw(csv, &[]).unwrap();
    let titled = "<title>Speed &amp; size</title>";
    for part in
        [titled, ">seconds<", ">redis<", ">ember<", ">the limit<", ">save, then load<", ">2.5<", ">12,345<"]
    {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(
        svg.contains("prefers-color-scheme:dark") && svg.contains(">10,000<") && svg.ends_with("</svg>\n")
    );
    let widths = bars(&svg);
    assert_eq!(widths.len(), 4);
    assert!((widths[2] / widths[3] - 12345.0 / 2.5).abs() < 2500.0, "{widths:?}");
}

#[test]
fn ranges_are_drawn_from_end_to_end() {
    let svg = draw("what,ember\na,2–4\nb,3 (2–4)\nc,-\nd,4\n", &[]).unwrap();
    let widths = bars(&svg);
    // A range is drawn as two bars: up to its low end, and from there to its high end. Values that were not measured
    // have no bars.
    assert_eq!(widths.len(), 4, "{svg}");
    let full = widths[3];
    for (width, share) in widths.iter().zip([0.5, 0.5, 0.75]) {
        assert!((width / full - share).abs() < 0.01, "{widths:?}");
    }
    assert_eq!(svg.matches("class=\"reach\"").count(), 1);
    assert!(svg.contains(">2–4<") && svg.contains(">3 (2–4)<") && svg.contains(">not measured<"), "{svg}");
}

#[test]
fn results_are_drawn_without_conditions_or_by_column() {
    let csv = "test,redis,\"ember, none\",setup\nSET,100,300,\"keys=5, cores=2\"\n";
    let svg = draw(csv, &[]).unwrap();
    assert!(svg.contains("<title>figures</title>") && !svg.contains("cores=2"), "{svg}");
    assert_eq!(bars(&svg).len(), 2);
    let svg = draw(csv, &["ember, none"]).unwrap();
    assert!(svg.contains(">ember, none<") && !svg.contains(">redis<"), "{svg}");
    assert_eq!(draw(csv, &["valkey"]).unwrap_err(), "1: no column \"valkey\"");
}

#[test]
fn malformed_figures_are_refused_with_their_line() {
    for (csv, error) in [
        ("", "0: no header"),
        ("a,b\n", "1: no figures below the header"),
        ("a\nb\n", "1: no column of figures"),
        ("a,b\nc,1,2\n", "2: 3 cells, but the header has 2"),
        ("a,b\n\nc,1\n", "2: 1 cells, but the header has 2"),
        ("a,b\n,1\n", "2: group without a name"),
        ("a,b\nc,\"1\n", "2: unclosed quote"),
        ("a,b\nc,1\r\n", "2: carriage return"),
        ("# colour: red\na,b\nc,1\n", "1: expected title, unit or line"),
        ("# line: x\na,b\nc,1\n", "1: \"x\" is not a figure for a line"),
        ("a,b\nc,0\n", "2: no figure above 0"),
        ("a,b\nc,3 (1–2)\n", "2: \"3 (1–2)\" is outside its range"),
        ("a,b,c,d,e,f,g,h\ni,1,2,3,4,5,6,7\n", "1: 7 columns of figures: the maximum is 6"),
    ] {
        assert_eq!(draw(csv, &[]).unwrap_err(), error, "{csv:?}");
    }
    for cell in ["x", "-1", "1e3", "1.", "2–1", "1–", "1 (0–2", "1 (2)"] {
        let error = draw(&format!("a,b\nc,{cell}\n"), &[]).unwrap_err();
        assert!(error.starts_with(&format!("2: \"{cell}\" is neither a figure, nor a range")), "{error}");
    }
    let absent = run(&["absent.csv"], None);
    assert_eq!(String::from_utf8(absent.stderr).unwrap(), "absent.csv: no such file\n");
}
