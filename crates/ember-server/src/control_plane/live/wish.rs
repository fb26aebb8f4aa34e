//! The parameters of a watch URL.
//!
//! ```text
//! cmd=GET%20price   a command line, may be repeated; spaces may be `+`
//! db=0              the number of the database
//! since=v,v         a version for each command, or empty: like Last-Event-ID, which takes precedence
//! interval=100      at most one state of each command per this many milliseconds
//! every=            equal states, too
//! ticket=…          the user's ticket
//! ```

use ember_protocol::client::split_arguments;
use hyper::HeaderMap;

/// The maximum number of commands per stream, because the browser sends their versions back in one header field.
const COMMANDS_MAX: usize = 32;

/// A command to watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// The command line as in the URL, decoded.
    pub(super) line: String,
    pub(super) words: Vec<Vec<u8>>,
    /// The version of the state that the client already has.
    pub(super) since: Option<String>,
}

/// The parsed parameters of a watch URL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) commands: Vec<Watched>,
    pub(super) database: Option<String>,
    pub(super) interval: Option<String>,
    pub(super) sends_equal: bool,
    pub(super) ticket: Option<String>,
}

impl Wish {
    /// Parses the part of a URL after `?`, and the header `Last-Event-ID`.
    ///
    /// # Errors
    /// Returns a message that describes the mistake.
    pub(super) fn parse(query: &str, headers: &HeaderMap) -> Result<Wish, String> {
        let mut wish = Wish::default();
        let mut since = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| format!("the value of '{name}' is not valid text"))?;
            match name {
                "cmd" => wish.add(value)?,
                "db" => wish.database = Some(value),
                "interval" => wish.interval = Some(value),
                "every" => wish.sends_equal = true,
                "ticket" => wish.ticket = Some(value),
                "since" => since = Some(value),
                _ => return Err(format!("'{name}' is unknown")),
            }
        }
        if wish.commands.is_empty() {
            return Err("a command is missing: cmd=GET%20key".to_owned());
        }
        if let Some(id) = headers.get("last-event-id") {
            since = Some(id.to_str().map_err(|_| "Last-Event-ID is not a version")?.to_owned());
        }
        if let Some(since) = since.filter(|since| !since.is_empty()) {
            wish.set_versions(&since)?;
        }
        Ok(wish)
    }

    fn add(&mut self, line: String) -> Result<(), String> {
        if self.commands.len() == COMMANDS_MAX {
            return Err(format!("a stream watches at most {COMMANDS_MAX} commands"));
        }
        let words = split_arguments(&line).filter(|words| !words.is_empty());
        let words = words
            .ok_or_else(|| format!("'{line}' is not a command: it is empty or has an unbalanced quote"))?;
        self.commands.push(Watched { line, words, since: None });
        Ok(())
    }

    fn set_versions(&mut self, versions: &str) -> Result<(), String> {
        let count = versions.split(',').count();
        if count != self.commands.len() {
            return Err(format!("{count} versions were given for {} commands", self.commands.len()));
        }
        for (command, version) in self.commands.iter_mut().zip(versions.split(',')) {
            command.since = (!version.is_empty()).then(|| version.to_owned());
        }
        Ok(())
    }
}

/// Decodes a URL-encoded value; returns `None` if it is not UTF-8 text.
fn decode(value: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(16 * high + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn parse(query: &str) -> Result<Wish, String> {
        Wish::parse(query, &HeaderMap::new())
    }

    #[test]
    fn commands_are_lines_with_quotes_and_any_text() {
        let wish =
            parse("cmd=GET%20price&cmd=hget+%22a%20b%22+%C3%A4&db=3&interval=50&every&ticket=t").unwrap();
        let words: Vec<Vec<Vec<u8>>> = wish.commands.iter().map(|command| command.words.clone()).collect();
        let [get, hget] = [vec![&b"GET"[..], b"price"], vec![b"hget", b"a b", "ä".as_bytes()]]
            .map(|words| words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
        assert_eq!(words, [get, hget]);
        assert_eq!(wish.commands[1].line, "hget \"a b\" ä");
        assert_eq!((wish.database.as_deref(), wish.interval.as_deref()), (Some("3"), Some("50")));
        assert!(wish.sends_equal && wish.ticket.as_deref() == Some("t"));
    }

    #[test]
    fn each_command_has_a_version_and_last_event_id_takes_precedence() {
        let versions =
            |wish: Wish| wish.commands.into_iter().map(|command| command.since).collect::<Vec<_>>();
        let two = "cmd=GET+a&cmd=GET+b&since=v1,v2";
        assert_eq!(versions(parse(two).unwrap()), [Some("v1".to_owned()), Some("v2".to_owned())]);
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", HeaderValue::from_static(",v4"));
        assert_eq!(versions(Wish::parse(two, &headers).unwrap()), [None, Some("v4".to_owned())]);
        headers.insert("last-event-id", HeaderValue::from_static("v4"));
        assert!(Wish::parse(two, &headers).is_err());
    }

    #[test]
    fn invalid_subscriptions_are_rejected_with_a_reason() {
        let many = "cmd=GET+a&".repeat(COMMANDS_MAX + 1);
        for query in [
            "",
            "cmd=",
            "cmd=%20",
            "cmd=GET+%22a",
            "cmd=%f",
            "cmd=%zz",
            "cmd=GET+%ff",
            "cmd=GET+a&x=1",
            &many,
        ] {
            assert!(parse(query).is_err_and(|reason| !reason.is_empty()), "{query}");
        }
    }
}
