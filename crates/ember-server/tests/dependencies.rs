//! The third-party code in the programs: its licences and sources are allowed by `deny.toml`, and the files of
//! `deploy/licenses` that accompany each package contain the licence notices and the bill of materials (SBOM) of this code.
//! `make bless` generates them.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ember_testkit::assert_generated;
use serde_json::{Value as Json, json};

/// The programs that packages contain.
const PROGRAMS: [&str; 2] = ["ember-server", "ember-cli"];

/// The platform whose crates are listed; other platforms of Linux have the same or fewer.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// C code in crates.
const C_CODE: [CCode; 4] = [
    CCode {
        package: "aws-lc-sys",
        name: "aws-lc",
        license: "Apache-2.0 AND ISC AND MIT AND BSD-3-Clause",
        notices: &["aws-lc/LICENSE", "aws-lc/third_party/fiat/LICENSE"],
        version: ("aws-lc/include/openssl/base.h", &["#define AWSLC_VERSION_NUMBER_STRING \""]),
    },
    CCode {
        package: "lmdb-master-sys",
        name: "lmdb",
        license: "OLDAP-2.8",
        notices: &["lmdb/libraries/liblmdb/COPYRIGHT", "lmdb/libraries/liblmdb/LICENSE"],
        version: (
            "lmdb/libraries/liblmdb/lmdb.h",
            &["#define MDB_VERSION_MAJOR\t", "#define MDB_VERSION_MINOR\t", "#define MDB_VERSION_PATCH\t"],
        ),
    },
    // The crate only contains Lua's sources; ember-lua compiles them.
    CCode {
        package: "lua-src",
        name: "lua",
        license: "MIT",
        notices: &["lua-5.1.5/lua.h"],
        version: ("lua-5.1.5/lua.h", &["#define LUA_RELEASE\t\"Lua "]),
    },
    CCode {
        package: "tikv-jemalloc-sys",
        name: "jemalloc",
        license: "BSD-2-Clause",
        notices: &["jemalloc/COPYING"],
        version: ("README.md", &["**Current jemalloc version**: "]),
    },
];

/// Crates without a licence file, and the SPDX identifier of the text that applies. For Apache-2.0, the text is that of
/// [`APACHE_SOURCE`].
const WITHOUT_FILE: [(&str, &str); 6] = [
    ("heed", "MIT"),
    ("heed-traits", "MIT"),
    ("heed-types", "MIT"),
    ("lmdb-master-sys", "Apache-2.0"),
    ("mlua-sys", "MIT"),
    ("varint-rs", "0BSD"),
];

/// A crate whose only licence file is the text of the Apache License.
const APACHE_SOURCE: &str = "rpassword";

const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.";

const ZERO_BSD: &str = "\
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
granted.

THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING
ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL,
DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS,
WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE
USE OR PERFORMANCE OF THIS SOFTWARE.";

const HEAD: &str = "\
Licences of the third-party code in ember-server and ember-cli. ember itself has the licence of the file LICENSE.

Each text applies to the crates and the C code that are listed above it. Where a crate offers several licences, the
text is that of the one under which ember distributes it.
";

struct CCode {
    /// The crate that contains the code.
    package: &'static str,
    name: &'static str,
    /// An SPDX expression.
    license: &'static str,
    /// The files with its notices.
    notices: &'static [&'static str],
    /// A file, and the texts before the parts of the version number in it.
    version: (&'static str, &'static [&'static str]),
}

/// A linked crate of another project.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    /// An SPDX expression.
    license: String,
    authors: Vec<String>,
    source: String,
    folder: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).args(["--locked"]).current_dir(root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names and versions of all crates that are linked into the programs.
fn linked() -> BTreeSet<(String, String)> {
    let mut arguments = vec!["tree", "--target", PLATFORM, "--edges", "normal,no-proc-macro"];
    arguments.extend(["--prefix", "none", "--format", "{p}"]);
    arguments.extend(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    let tree = cargo(&arguments);
    let name_and_version = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    tree.lines().filter_map(name_and_version).collect()
}

/// Returns the linked crates of other projects, and the crates with only C code, in alphabetical order.
fn packages() -> Vec<Package> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", PLATFORM]);
    let metadata: Json = serde_json::from_str(&metadata).unwrap();
    let linked = linked();
    assert!(linked.len() > 50, "{linked:?}");
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let is_compiled = C_CODE.iter().any(|code| code.package == name);
        if package["source"].is_null() || !is_compiled && !linked.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let authors = package["authors"].as_array().unwrap().iter();
        packages.push(Package {
            license: text("license").replace('/', " OR "),
            authors: authors.map(|author| author.as_str().unwrap().to_owned()).collect(),
            source: text("source"),
            folder: Path::new(&text("manifest_path")).parent().unwrap().to_owned(),
            name,
            version,
        });
    }
    packages.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    packages
}

/// Returns the strings of a list in `deny.toml`, after `name = [`; `before` is the text before each string.
fn policy(name: &str, before: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split(&format!("\n{name} = [\n")).nth(1).unwrap().split("\n]").next().unwrap();
    let items = list.lines().filter_map(|line| line.trim().strip_prefix(before)?.split('"').next());
    items.map(str::to_owned).collect()
}

/// Whether an SPDX expression permits use under allowed licences alone.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let either = parts(expression, " OR ");
    if either.len() > 1 {
        return either.iter().any(|part| is_allowed(part, allowed));
    }
    let all = parts(expression, " AND ");
    if all.len() > 1 {
        return all.iter().all(|part| is_allowed(part, allowed));
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_allowed(inner, allowed),
        None => allowed.contains(expression),
    }
}

/// Splits an expression at an operator outside brackets.
fn parts<'e>(expression: &'e str, operator: &str) -> Vec<&'e str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (index, letter) in expression.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && index >= begin && expression[index..].starts_with(operator) => {
                parts.push(&expression[begin..index]);
                begin = index + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[begin..]);
    parts
}

#[test]
fn expressions_are_allowed_if_one_choice_is() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "ISC".to_owned()]);
    for expression in ["MIT", "GPL-2.0 OR MIT", "ISC AND (Apache-2.0 OR MIT)", "(MIT OR GPL-2.0) AND ISC"] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["GPL-2.0", "MIT AND GPL-2.0", "MIT AND (GPL-2.0 OR Apache-2.0)", ""] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}

#[test]
fn linked_crates_have_allowed_licences_names_and_sources() {
    let (allowed, banned) = (policy("allow", "\""), policy("deny", "{ name = \""));
    assert!(allowed.contains("MIT") && !banned.is_empty(), "{allowed:?} {banned:?}");
    let packages = packages();
    let mut wrong = Vec::new();
    for Package { name, version, license, source, .. } in &packages {
        if !is_allowed(license, &allowed) {
            wrong.push(format!("{name} {version}: the licence {license} is not allowed by deny.toml"));
        }
        if !(source.starts_with("registry+") && source == &packages[0].source) {
            wrong.push(format!("{name} {version}: {source} is not the default registry"));
        }
        if banned.contains(name) {
            wrong.push(format!("{name} {version} is banned by deny.toml"));
        }
    }
    for code in &C_CODE {
        if !is_allowed(code.license, &allowed) {
            wrong.push(format!("{}: the licence {} is not allowed by deny.toml", code.name, code.license));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the text of a notice: of a C header, the last comment with a copyright.
fn notice(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|extension| extension != "h") {
        return text;
    }
    let comments = text.split("/*").skip(1).filter_map(|rest| rest.split("*/").next());
    let comment = comments.filter(|comment| comment.contains("Permission is")).last().unwrap();
    let lines = comment.lines().map(|line| line.trim_start_matches('*').trim());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Returns the licence files in the folder of a crate; if the licence is a choice, only the file of MIT or of another
/// permitted licence.
fn files(package: &Package) -> Vec<PathBuf> {
    let entries = fs::read_dir(&package.folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().to_uppercase();
    let mut files: Vec<PathBuf> = entries
        .filter(|path| {
            let prefixes = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
            path.is_file() && prefixes.iter().any(|prefix| name(path).starts_with(prefix))
        })
        .collect();
    files.sort();
    let choices = parts(&package.license, " OR ");
    for (choice, part) in [("MIT", "-MIT"), ("Apache-2.0", "-APACHE"), ("ISC", "-ISC")] {
        let chosen: Vec<PathBuf> = files.iter().filter(|path| name(path).ends_with(part)).cloned().collect();
        if choices.contains(&choice) && !chosen.is_empty() {
            return chosen;
        }
    }
    files
}

fn without_file(package: &Package, packages: &[Package]) -> String {
    let (_, license) = WITHOUT_FILE
        .iter()
        .find(|(name, _)| *name == package.name)
        .unwrap_or_else(|| panic!("{} has no licence file: add it to WITHOUT_FILE", package.name));
    assert!(parts(&package.license, " OR ").contains(license), "{package:?}");
    let copyright = format!("Copyright (c) {}", package.authors.join(", "));
    match *license {
        "MIT" => format!("MIT License\n\n{copyright}\n\n{MIT}"),
        "0BSD" => format!("{copyright}\n\n{ZERO_BSD}"),
        "Apache-2.0" => {
            let source = packages.iter().find(|package| package.name == APACHE_SOURCE).unwrap();
            notice(&files(source)[0])
        }
        other => panic!("no text of {other}"),
    }
}

fn notices() -> String {
    let packages = packages();
    // Texts with the code to which they apply; texts that differ only in white space are equal.
    let mut texts: BTreeMap<String, (Vec<String>, String)> = BTreeMap::new();
    let mut order = Vec::new();
    let mut add = |subject: String, text: &str| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let entry = texts.entry(words.clone()).or_insert_with(|| {
            order.push(words);
            (Vec::new(), text.trim().to_owned())
        });
        entry.0.push(subject);
    };
    let standard = format!("MIT License\n\nCopyright (c) The Rust Project Contributors\n\n{MIT}");
    add("the standard library of Rust (MIT OR Apache-2.0)".to_owned(), &standard);
    for package in &packages {
        let subject = format!("{} {} ({})", package.name, package.version, package.license);
        let paths = files(package);
        if paths.is_empty() {
            add(subject, &without_file(package, &packages));
        } else {
            paths.iter().for_each(|path| add(subject.clone(), &notice(path)));
        }
        for code in C_CODE.iter().filter(|code| code.package == package.name) {
            let subject = format!("{} {}, C code ({})", code.name, version(code, package), code.license);
            for path in code.notices {
                add(subject.clone(), &notice(&package.folder.join(path)));
            }
        }
    }
    let mut file = HEAD.to_owned();
    for words in order {
        let (subjects, text) = &texts[&words];
        file.push_str(&format!("\n{}\n{}\n\n", "=".repeat(80), subjects.join("\n")));
        file.push_str(&text.replace('\t', "    ").replace('\r', ""));
        file.push('\n');
    }
    file
}

/// Returns the version of C code, such as `5.1.5`.
fn version(code: &CCode, package: &Package) -> String {
    let (path, texts) = code.version;
    let file = fs::read_to_string(package.folder.join(path)).unwrap();
    let part = |before: &&str| {
        let (_, after) = file.split_once(before).unwrap_or_else(|| panic!("{path} has no {before}"));
        after.chars().skip_while(|c| *c == '\t').take_while(|c| c.is_ascii_digit() || *c == '.').collect()
    };
    let version = texts.iter().map(part).collect::<Vec<String>>().join(".");
    let version = version.trim_end_matches('.').to_owned();
    assert!(version.contains('.') && !version.contains(".."), "{path}: {version}");
    version
}

#[test]
fn the_licence_notices_are_the_generated_ones() {
    let text = notices();
    for code in &C_CODE {
        assert!(text.contains(&format!("\n{} ", code.name)), "{}", code.name);
    }
    assert_generated(&root().join("deploy/licenses/THIRD-PARTY.txt"), &text);
}

/// Returns the SHA-256 of each crate in `Cargo.lock`, by name and version.
fn checksums() -> BTreeMap<(String, String), String> {
    let text = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut checksums = BTreeMap::new();
    for entry in text.split("[[package]]").skip(1) {
        let of =
            |name: &str| Some(entry.split(&format!("\n{name} = \"")).nth(1)?.split('"').next()?.to_owned());
        if let Some(checksum) = of("checksum") {
            checksums.insert((of("name").unwrap(), of("version").unwrap()), checksum);
        }
    }
    checksums
}

fn bill_of_materials() -> Json {
    let checksums = checksums();
    let mut components = Vec::new();
    for package in packages() {
        let Package { name, version: of_package, license, .. } = &package;
        let hash = &checksums[&(name.clone(), of_package.clone())];
        let reference = format!("pkg:cargo/{name}@{}", of_package.replace('+', "%2B"));
        components.push(json!({
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": of_package,
            "purl": reference,
            "licenses": [{ "expression": license }],
            "hashes": [{ "alg": "SHA-256", "content": hash }],
        }));
        for code in C_CODE.iter().filter(|code| code.package == *name) {
            let version = version(code, &package);
            let reference = format!("pkg:generic/{}@{version}", code.name);
            components.push(json!({
                "type": "library",
                "bom-ref": reference,
                "name": code.name,
                "version": version,
                "purl": reference,
                "licenses": [{ "expression": code.license }],
            }));
        }
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "ember",
                "name": "ember",
                "version": env!("CARGO_PKG_VERSION"),
                "licenses": [{ "expression": "MIT" }],
            },
            "properties": [{ "name": "platform", "value": PLATFORM }],
        },
        "components": components,
    })
}

#[test]
fn the_bill_of_materials_is_the_generated_one() {
    let bill = bill_of_materials();
    let references: Vec<&str> =
        bill["components"].as_array().unwrap().iter().map(|it| it["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(references.iter().collect::<BTreeSet<_>>().len(), references.len(), "{references:?}");
    let text = serde_json::to_string_pretty(&bill).unwrap();
    assert_generated(&root().join("deploy/licenses/ember.cdx.json"), &text);
}
