//! A headless browser controlled by WebDriver: JSON over HTTP as in the W3C recommendation, and two commands specific
//! to Chromium.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::require_program;

/// The timeout of a WebDriver command, and of waiting for a condition in the page.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of attempts to start a driver.
const DRIVER_STARTS: usize = 5;

/// The JSON name of references to elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys other than letters.
pub mod key {
    /// The Tab key.
    pub const TAB: &str = "\u{e004}";
    /// The return key.
    pub const ENTER: &str = "\u{e007}";
    /// The escape key.
    pub const ESCAPE: &str = "\u{e00c}";
}

/// A browser with one page and a separate profile. Dropping it closes the browser.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    /// The driver's output; the driver would end if the read end of the pipe were closed.
    _output: BufReader<ChildStdout>,
    port: u16,
    session: String,
}

/// Starts a driver; returns the process, its output and its port. None if it ended before it listened.
fn start_driver() -> Option<(Child, BufReader<ChildStdout>, u16)> {
    let mut driver = Command::new(require_program("chromedriver"))
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("chromedriver can be run");
    let mut output = BufReader::new(driver.stdout.take().expect("the output was piped"));
    let port = (&mut output).lines().find_map(|line| {
        let line = line.expect("chromedriver writes text");
        line.split(" successfully on port ").nth(1)?.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        driver.wait().expect("chromedriver has closed its output");
    }
    Some((driver, output, port?))
}

impl Browser {
    /// Starts a browser with a window of 1280 by 900 pixels.
    ///
    /// # Panics
    /// Panics if the browser is not installed, or does not start.
    pub fn start() -> Browser {
        let chromium = require_program("chromium");
        // The driver binds a free IPv4 port and then the same IPv6 port. If another process uses the latter, the driver
        // ends, and is started again.
        let (driver, output, port) =
            (0..DRIVER_STARTS).find_map(|_| start_driver()).expect("chromedriver reports its port");
        let mut browser = Browser { driver, _output: output, port, session: String::new() };
        let options = json!({
            "binary": chromium,
            // As root and in containers, the sandbox is not available and shared memory is limited.
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                "--window-size=1280,900"],
        });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let answer = browser.call("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        let id = answer["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}"));
        browser.session = format!("/session/{id}");
        browser.act("/timeouts", &json!({ "script": PATIENCE.as_millis() as u64 }));
        browser
    }

    /// Opens a page, and waits until it is loaded.
    ///
    /// # Panics
    /// Panics if the browser reports an error; the same holds for all following functions.
    pub fn open(&self, url: &str) {
        self.act("/url", &json!({ "url": url }));
    }

    /// Runs `body` as the body of a JavaScript function in the page. Returns its result; if that is a promise, the
    /// promise's result.
    pub fn run(&self, body: &str) -> Json {
        self.act("/execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// Waits until an expression is true, and returns its value.
    #[track_caller]
    pub fn wait_for(&self, expression: &str) -> Json {
        let script = format!(
            "const done = arguments[0], end = Date.now() + {};
             const look = () => {{
                 let found = null;
                 try {{ found = {expression}; }} catch {{}}
                 if (found || Date.now() > end) done(found || null); else setTimeout(look, 30);
             }};
             look();",
            PATIENCE.as_millis() / 2
        );
        let found = self.act("/execute/async", &json!({ "script": script, "args": [] }));
        let text = || self.run("return document.body.innerText");
        assert!(
            !found.is_null(),
            "condition never met: {expression}\nthe page: {}",
            text().as_str().unwrap_or("")
        );
        found
    }

    /// Waits until the text of the first element matching a selector contains a text.
    #[track_caller]
    pub fn wait_for_text(&self, selector: &str, text: &str) {
        self.wait_for(&format!(
            "document.querySelector({}).innerText.includes({})",
            json!(selector),
            json!(text)
        ));
    }

    /// Returns the visible text of the first element matching a selector.
    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        let text = self.wait_for(&format!("[document.querySelector({}).innerText]", json!(selector)));
        text[0].as_str().expect("text is a string").to_owned()
    }

    /// Returns the number of elements matching a selector.
    pub fn count(&self, selector: &str) -> u64 {
        let count = self.run(&format!("return document.querySelectorAll({}).length", json!(selector)));
        count.as_u64().expect("a length is a number")
    }

    /// Waits for the first element matching a selector, and clicks its center.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.wait_for(&format!("document.querySelector({}) !== null", json!(selector)));
        self.act_on("css selector", selector, &[("click", json!({}))]);
    }

    /// Waits for the first button or link with this text or label inside the element matching a selector, and clicks
    /// it.
    #[track_caller]
    pub fn click_button(&self, inside: &str, label: &str) {
        let condition = format!("(text() = '{label}' or .//text() = '{label}' or @aria-label = '{label}')");
        let path = format!("{inside}//*[self::button or self::a][{condition}]");
        let found = format!("document.evaluate({}, document, null, 9).singleNodeValue !== null", json!(path));
        self.wait_for(&found);
        self.act_on("xpath", &path, &[("click", json!({}))]);
    }

    /// Clears an input field and types `text` into it.
    #[track_caller]
    pub fn fill(&self, selector: &str, text: &str) {
        self.wait_for(&format!("document.querySelector({}) !== null", json!(selector)));
        self.act_on("css selector", selector, &[("clear", json!({})), ("value", json!({ "text": text }))]);
    }

    /// Presses keys one after another; the focused element receives them.
    pub fn press(&self, keys: &str) {
        let presses: Vec<Json> = keys
            .chars()
            .flat_map(|letter| {
                [json!({ "type": "keyDown", "value": letter }), json!({ "type": "keyUp", "value": letter })]
            })
            .collect();
        self.act(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": presses }] }),
        );
    }

    /// Sets the preferred colour scheme that the page observes.
    pub fn prefer_dark(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.chromium("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Sets the width and height of the page, in CSS pixels.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.chromium("Emulation.setDeviceMetricsOverride", size);
    }

    fn chromium(&self, command: &str, parameters: Json) {
        self.act("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Saves a screenshot of the page.
    pub fn keep_picture(&self, path: &Path) {
        let picture = self.call("GET", &format!("{}/screenshot", self.session), &Json::Null);
        let picture = STANDARD.decode(picture.as_str().expect("a picture is text")).expect("it is base64");
        assert!(picture.starts_with(b"\x89PNG"), "a picture is a PNG file");
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be created");
        fs::write(path, picture).expect("a picture can be written");
    }

    /// Returns the console messages of the page since the last call, including those of the browser about the page.
    pub fn console(&self) -> Vec<String> {
        let entries = self.act("/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().expect("the log is a list");
        entries.iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// Finds an element and performs actions on it, in order. If the page replaces the element in between, all actions
    /// are repeated on the new element.
    #[track_caller]
    fn act_on(&self, using: &str, value: &str, actions: &[(&str, Json)]) {
        let end = Instant::now() + PATIENCE;
        while let Err(wrong) = self.try_on(using, value, actions) {
            let is_replaced =
                wrong["error"] == "stale element reference" || wrong["error"] == "no such element";
            assert!(is_replaced && Instant::now() < end, "{value}: {wrong:#}");
        }
    }

    #[track_caller]
    fn try_on(&self, using: &str, value: &str, actions: &[(&str, Json)]) -> Result<(), Json> {
        let done = |path: &str, parameters: &Json| {
            let (status, answer) = self.try_call("POST", &format!("{}{path}", self.session), parameters);
            if status == 200 { Ok(answer) } else { Err(answer) }
        };
        let found = done("/element", &json!({ "using": using, "value": value }))?;
        let element = found[ELEMENT].as_str().expect("an element has a name");
        for (action, parameters) in actions {
            done(&format!("/element/{element}/{action}"), parameters)?;
        }
        Ok(())
    }

    /// Sends a command of the WebDriver session and returns its result.
    #[track_caller]
    fn act(&self, path: &str, parameters: &Json) -> Json {
        self.call("POST", &format!("{}{path}", self.session), parameters)
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, parameters: &Json) -> Json {
        let (status, value) = self.try_call(method, path, parameters);
        assert_eq!(status, 200, "{path} {parameters}: {value:#}");
        value
    }

    /// Returns the status of a response, and its value: the result or the error.
    #[track_caller]
    fn try_call(&self, method: &str, path: &str, parameters: &Json) -> (u16, Json) {
        let (status, mut answer) =
            exchange(self.port, method, path, parameters).unwrap_or_else(|error| panic!("{path}: {error}"));
        (status, answer["value"].take())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes the browser; an error means that it is already closed.
        let _ = exchange(self.port, "DELETE", &self.session, &Json::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Sends one request; returns the status and the body of the response.
fn exchange(port: u16, method: &str, path: &str, parameters: &Json) -> io::Result<(u16, Json)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(2 * PATIENCE))?;
    let body = if method == "POST" { parameters.to_string() } else { String::new() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())?;
    let mut reader = BufReader::new(stream);
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no HTTP response");
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.to_ascii_lowercase());
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or_else(wrong)?;
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = Vec::new();
    reader.take(length.ok_or_else(wrong)?).read_to_end(&mut body)?;
    Ok((status, serde_json::from_slice(&body)?))
}
