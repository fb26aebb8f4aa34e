//! The files of `deploy/` match the server: the metrics in them exist, the unit starts the server, and the server reads
//! its files. The Dockerfile matches, too: the files that it builds and copies exist, and the server accepts its
//! arguments.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ember_testkit::{RawClient, Server, http_get, split_arguments};
use serde_json::Value as Json;

/// Labels that Prometheus adds, and the label of histogram bounds.
const GIVEN_LABELS: [&str; 3] = ["instance", "job", "le"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn deploy(path: &str) -> PathBuf {
    root().join("deploy").join(path).canonicalize().unwrap()
}

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

/// Returns the names of all samples that a server may export, with the labels of the samples that it does export.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let server = Server::builder(program()).metrics().start();
    let mut client = server.client();
    // Causes one event for each metric whose samples are created by events.
    client.run("GET");
    let text = http_get(server.metrics_address(), "/metrics").unwrap().body;
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# HELP ") {
            metrics.insert(name.split(' ').next().unwrap().to_owned(), BTreeSet::new());
        } else if let Some(name) =
            line.strip_prefix("# TYPE ").and_then(|line| line.strip_suffix(" histogram"))
        {
            // Without observations a histogram has no samples.
            metrics.entry(format!("{name}_bucket")).or_default();
        } else if !line.starts_with('#') {
            let (name, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
            let labels = labels.split("\",").filter_map(|label| Some(label.split_once("=\"")?.0.to_owned()));
            metrics.entry(name.to_owned()).or_default().extend(labels);
        }
    }
    metrics
}

/// Returns the words of a Prometheus expression.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
}

/// Returns the labels by which an expression groups or which it compares.
fn labels(expression: &str) -> BTreeSet<&str> {
    let mut labels = BTreeSet::new();
    for rest in expression.split("by (").skip(1) {
        labels.extend(words(rest.split(')').next().unwrap()).filter(|word| !word.is_empty()));
    }
    for rest in expression.split('{').skip(1) {
        let matchers = rest.split('}').next().unwrap().split(',');
        labels.extend(matchers.map(|matcher| words(matcher).next().unwrap()));
    }
    labels
}

/// Asserts that the metrics and labels in an expression exist.
#[track_caller]
fn assert_exists(expression: &str, metrics: &BTreeMap<String, BTreeSet<String>>) {
    let is_metric = |word: &&str| word.starts_with("ember_") || word.starts_with("process_");
    let named: Vec<&str> = words(expression).filter(is_metric).collect();
    assert!(!named.is_empty() || expression.starts_with("up{"), "no metric in {expression}");
    let mut known: BTreeSet<&str> = GIVEN_LABELS.into();
    for name in named {
        let of = metrics.get(name).unwrap_or_else(|| panic!("there is no {name}: {expression}"));
        known.extend(of.iter().map(String::as_str));
    }
    let unknown: Vec<_> = labels(expression).difference(&known).copied().collect::<Vec<_>>();
    assert!(unknown.is_empty(), "{expression}: no such labels: {unknown:?}");
}

#[test]
fn the_dashboard_shows_existing_metrics() {
    let metrics = metrics();
    let dashboard: Json = serde_json::from_slice(&fs::read(deploy("grafana/ember.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut numbers, mut taken, mut expressions) = (BTreeSet::new(), BTreeSet::new(), 0);
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "two panels with the number of {title}");
        let of = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        for x in of("x")..of("x") + of("w") {
            for y in of("y")..of("y") + of("h") {
                assert!(
                    x < 24 && taken.insert((x, y)),
                    "{title} overlaps another panel, or is outside the page"
                );
            }
        }
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        assert_eq!(targets.is_empty(), panel["type"] == "row", "{title}");
        for target in targets {
            assert_exists(target["expr"].as_str().unwrap(), &metrics);
            expressions += 1;
        }
    }
    assert!(expressions > 40, "{expressions}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            assert!(query.starts_with("label_values(ember_build_info"), "{query}");
        }
    }
}

#[test]
fn alerts_use_existing_metrics() {
    let metrics = metrics();
    let text = fs::read_to_string(deploy("prometheus/alerts.yml")).unwrap();
    let rules: Vec<&str> = text.split("      - alert: ").skip(1).collect();
    assert!(rules.len() > 10);
    let mut names = BTreeSet::new();
    for rule in rules {
        let (name, rest) = rule.split_once('\n').unwrap();
        assert!(name.starts_with("Ember") && names.insert(name), "{name}");
        let expression: String = rest.split("expr: ").nth(1).unwrap().trim_start_matches(">-").to_owned();
        // The expression ends at the first line that begins at the column of `expr`.
        let expression = expression
            .lines()
            .enumerate()
            .take_while(|(index, line)| *index == 0 || line.starts_with("          "));
        let expression: Vec<&str> = expression.map(|(_, line)| line.trim()).collect();
        assert_exists(expression.join(" ").trim(), &metrics);
        for field in
            ["        labels:\n          severity: ", "          summary: ", "          description: "]
        {
            assert!(rest.contains(field), "{name} has no {}", field.trim());
        }
    }
}

#[test]
fn every_alert_is_provoked_in_the_tests_of_promtool() {
    let metrics = metrics();
    let rules = fs::read_to_string(deploy("prometheus/alerts.yml")).unwrap();
    let tests = fs::read_to_string(deploy("prometheus/alerts_test.yml")).unwrap();
    let names = |text: &str, before: &str| -> BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(before));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(names(&rules, "- alert: "), names(&tests, "- name: "));
    for series in names(&tests, "- series: '") {
        let name = series.split('{').next().unwrap();
        assert!(name == "up" || metrics.contains_key(name), "there is no {name}");
    }
}

#[test]
fn systemd_starts_the_server_and_is_notified() {
    let unit = fs::read_to_string(deploy("systemd/ember.service")).unwrap();
    let of = |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert_eq!((of("Type"), of("NotifyAccess")), (Some("notify"), Some("main")));
    let directory = std::env::temp_dir().join(format!("ember-unit-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let configuration = deploy("ember.conf").display().to_string();
    let line = of("ExecStart").unwrap().replace("/var/lib/ember", &directory.display().to_string());
    let line = line.replace("/etc/ember/ember.conf", &configuration);
    let words = split_arguments(&line).unwrap();
    let words: Vec<String> = words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect();
    assert_eq!(words[0], "/usr/local/bin/ember-server");
    assert_eq!(words[1], configuration);
    let path = directory.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut child = Command::new(program())
        .args(&words[1..])
        .args(["--port", "0", "--unixsocket", "server.sock", "--logfile", "log"])
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    let mut message = [0; 64];
    let received = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..received], b"READY=1");
    let mut client = RawClient::connect_unix(&directory.join("server.sock")).unwrap();
    assert_eq!(client.run("PING").text(), "PONG");
    client.send(b"SHUTDOWN\r\n").unwrap();
    let received = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..received], b"STOPPING=1");
    assert!(child.wait().unwrap().success());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn bash_completes_parameters_and_their_values() {
    let script = deploy("completions/ember-server.bash");
    let complete = |words: &str, index: usize| {
        let last = words.split(' ').nth(index).unwrap_or_default();
        let before = words.split(' ').nth(index - 1).unwrap_or_default();
        let text = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={index}; \
             _ember__server ember-server '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &text]).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("ember-server --metrics-", 1), "--metrics-port --metrics-bind --metrics-dashboard");
    assert_eq!(complete("ember-server --concurrent n", 2), "no");
    assert_eq!(complete("ember-server --maxmemory-policy allkeys-l", 2), "allkeys-lru allkeys-lfu");
}

/// Returns the instructions of the Dockerfile: the name and the rest of the line.
fn instructions(dockerfile: &str) -> Vec<(&str, &str)> {
    let lines = dockerfile.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).collect()
}

#[test]
fn the_image_is_built_from_existing_files() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let instructions = instructions(&dockerfile);
    let of = |name: &str| -> Vec<&str> {
        instructions.iter().filter(|(found, _)| *found == name).map(|(_, rest)| *rest).collect()
    };
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    let stages = of("FROM");
    let (_, debian) =
        stages[0].strip_suffix(" AS build").unwrap().split_once(&format!("rust:{version}-")).unwrap();
    // Both stages use the same Debian release, and thus the same C library.
    assert_eq!(stages[1..], [format!("debian:{debian}-slim")]);
    let build = of("RUN")[0];
    assert!(build.starts_with("cargo build --release --locked -p "), "{build}");
    let built: BTreeSet<&str> = build.split(" -p ").skip(1).collect();
    for package in &built {
        let main = format!("crates/{package}/src/main.rs");
        assert!(root().join(&main).is_file(), "{main}");
    }
    let copies = of("COPY");
    assert_eq!((of("WORKDIR")[0], copies[0], copies.len()), ("/src", ". .", 3));
    let words: Vec<&str> = copies[1].split(' ').collect();
    let (target, sources) = words[1..].split_last().unwrap();
    let copied: BTreeSet<&str> =
        sources.iter().map(|source| source.strip_prefix("/src/dist/").unwrap()).collect();
    assert_eq!(of("RUN")[1], "scripts/strip-binaries.sh target/release dist");
    assert!(root().join("scripts/strip-binaries.sh").is_file());
    assert_eq!((words[0], *target, &copied), ("--from=build", "/usr/local/bin/", &built));
    // The image contains the licence of ember, the notices of all linked code, and the list of that code.
    let notices =
        copies[2].strip_prefix("--from=build ").unwrap().strip_suffix(" /usr/share/doc/ember/").unwrap();
    let notices: Vec<&str> = notices.split(' ').map(|path| path.strip_prefix("/src/").unwrap()).collect();
    assert_eq!(notices, ["LICENSE", "deploy/licenses/THIRD-PARTY.txt", "deploy/licenses/ember.cdx.json"]);
    assert!(notices.iter().all(|path| root().join(path).is_file()));
    // The build does not need any file that is excluded from the build context.
    let ignored = fs::read_to_string(root().join(".dockerignore")).unwrap();
    for line in ignored.lines() {
        assert!(["target", ".git", "data", "bench/results", "**/node_modules"].contains(&line), "{line}");
    }
}

#[test]
fn the_image_runs_the_server_unprivileged() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let instructions = instructions(&dockerfile);
    let of = |name: &str| instructions.iter().find(|(found, _)| *found == name).unwrap().1;
    let user = of("USER").split(':').next().unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && dockerfile.contains(&format!("--uid {user} ")), "{user}");
    assert_eq!(of("VOLUME"), "/data");
    assert!(dockerfile.ends_with(&format!("ENTRYPOINT [\"ember-server\"]\nCMD {}\n", of("CMD"))));
    // The server is reachable from outside the container, and refuses clients from there until a password is set. The
    // test queries the parameters instead of listening, because a test does not listen on external interfaces.
    let arguments: Vec<String> = serde_json::from_str(of("CMD")).unwrap();
    let variables = instructions.iter().filter(|(found, _)| *found == "ENV");
    let (name, value) = variables.filter_map(|(_, variable)| variable.split_once('=')).next_back().unwrap();
    assert_eq!((name, value), ("EMBER_BIND", "0.0.0.0"));
    let mut check = Command::new(program());
    let checked = check.args(&arguments).arg("--check-config").env(name, value).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let server = Server::start(program(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut client = server.client();
    for (name, value) in [("protected-mode", "yes"), ("requirepass", "")] {
        assert_eq!(client.run(&format!("CONFIG GET {name}")).elements().unwrap()[1].text(), value);
    }
    // The documents run the image with the volumes and ports of the Dockerfile.
    let document = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let runs: Vec<&str> = document.lines().filter(|line| line.starts_with("docker run ")).collect();
    assert!(!runs.is_empty());
    for line in runs {
        assert!(line.ends_with(" ember"), "{line}");
        assert!(line.contains(&format!(":{} ", of("VOLUME"))), "{line}");
        assert!(line.contains(" --env EMBER_REQUIREPASS "), "no client could use it: {line}");
        let port = line.split("--publish 127.0.0.1:6379:").nth(1).unwrap().split(' ').next().unwrap();
        assert!(of("EXPOSE").split(' ').any(|exposed| exposed == port), "{line}");
    }
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains("\nIMAGE ?= ember\n") && makefile.contains(" -t $(IMAGE) .\n"));
    assert!(
        makefile.contains("docker build --build-arg EMBER_COMMIT=")
            && dockerfile.contains("\nARG EMBER_COMMIT=")
    );
}

/// Asserts that the server accepts arguments; a password file among them is replaced by an existing one.
#[track_caller]
fn assert_accepts(arguments: &[String]) {
    let secret = std::env::temp_dir().join(format!("ember-deploy-secret-{}", std::process::id()));
    fs::write(&secret, "secret\n").unwrap();
    let is_secret = |argument: &String| argument.starts_with("/run/secrets/");
    let replaced = arguments.iter().map(|argument| match is_secret(argument) {
        true => secret.display().to_string(),
        false => argument.clone(),
    });
    let checked = Command::new(program()).args(replaced).arg("--check-config").output().unwrap();
    assert!(checked.status.success(), "{arguments:?}: {checked:?}");
    assert!(arguments.iter().any(is_secret), "no password: {arguments:?}");
    fs::remove_file(secret).unwrap();
}

#[test]
fn the_compose_file_runs_the_image_with_accepted_arguments() {
    let compose = fs::read_to_string(deploy("compose/compose.yml")).unwrap();
    let of = |name: &str| compose.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap().trim();
    let arguments: Vec<String> = serde_json::from_str(of("command:")).unwrap();
    assert_accepts(&arguments);
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(dockerfile.contains("\nVOLUME /data\n") && of("volumes:") == "[\"data:/data\"]");
    assert!(dockerfile.contains("\nEXPOSE 6379 ") && of("ports:") == "[\"127.0.0.1:6379:6379\"]");
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains(&format!("\nIMAGE ?= {}\n", of("image:"))));
}

/// Returns the paths of all values of a YAML file of nested mappings, such as `image.tag`.
fn value_paths(yaml: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    for line in yaml.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')) {
        let depth = line.len() - line.trim_start().len();
        let (name, value) = line.trim().split_once(':').unwrap();
        parents.retain(|(parent, _)| *parent < depth);
        parents.push((depth, name.to_owned()));
        if !value.is_empty() {
            paths.insert(parents.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("."));
        }
    }
    paths
}

#[test]
fn the_helm_chart_uses_its_values_and_runs_the_image_with_accepted_arguments() {
    let values = fs::read_to_string(deploy("helm/ember/values.yaml")).unwrap();
    let templates: String = fs::read_dir(deploy("helm/ember/templates"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let of_value = |rest: &str| -> String {
        rest.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '.').collect()
    };
    let used: BTreeSet<String> = templates.split(".Values.").skip(1).map(of_value).collect();
    let paths = value_paths(&values);
    let is_below = |path: &str, name: &str| path == name || path.starts_with(&format!("{name}."));
    for name in &used {
        assert!(paths.iter().any(|path| is_below(path, name)), "values.yaml has no {name}");
    }
    for path in &paths {
        assert!(used.iter().any(|name| is_below(path, name)), "no template uses {path}");
    }
    assert_eq!(templates.matches("{{").count(), templates.matches("}}").count());
    // The arguments in the template, with the values of the chart.
    let value_of = |name: &str| {
        let leaf = format!("{}: ", name.rsplit('.').next().unwrap());
        let parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
        let part = values.split(&format!("\n{parent}:\n")).last().unwrap();
        part.lines().find_map(|line| line.trim().strip_prefix(&leaf)).unwrap().to_owned()
    };
    let arguments = templates.split("          args:\n").nth(1).unwrap().split("{{- range").next().unwrap();
    let mut arguments: Vec<String> = arguments
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
        .map(|argument| match argument.strip_prefix("{{ .Values.") {
            Some(rest) => value_of(&of_value(rest)),
            None => argument.to_owned(),
        })
        .collect();
    assert!(arguments.len() >= 8, "{arguments:?}");
    arguments.extend(serde_json::from_str::<Vec<String>>(&value_of("arguments")).unwrap());
    assert_accepts(&arguments);
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let user = dockerfile.split("\nUSER ").nth(1).unwrap().split(':').next().unwrap();
    assert!(templates.contains(&format!("fsGroup: {user}\n")));
    assert!(dockerfile.contains("\nVOLUME /data\n") && templates.contains("mountPath: /data }"));
    let chart = fs::read_to_string(deploy("helm/ember/Chart.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(chart.contains(&format!("\nappVersion: \"{version}\"\n")), "{chart}");
}
