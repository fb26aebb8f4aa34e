//! Output formats of replies: as on a terminal, raw, CSV or JSON.

pub(crate) mod csv;
mod documents;
mod json;
mod raw;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;

use ember_protocol::client::{Paint, Piece, Value, render_with};

use crate::arguments::OutputOptions;

/// The format of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As in redis-cli on a terminal.
    Standard,
    /// Raw bytes.
    Raw,
    /// Comma-separated values.
    Csv,
    /// JSON.
    Json,
    /// JSON in ASCII.
    QuotedJson,
}

/// The contents of a reply, as far as its format depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Values.
    #[default]
    Values,
    /// Text for users, which is written unchanged in every format.
    Text,
    /// JSON documents.
    Documents,
}

/// The format of replies and the delimiters between them.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) form: Form,
    pub(crate) element_delimiter: Vec<u8>,
    pub(crate) answer_delimiter: Vec<u8>,
    /// Whether replies are coloured by type: in a REPL on a terminal.
    pub(crate) is_coloured: bool,
    /// Whether JSON documents are indented: at a prompt, in the standard form.
    pub(crate) indents_documents: bool,
}

impl Output {
    /// Returns the output that the options select.
    pub(crate) fn of(options: &OutputOptions) -> Output {
        let bytes = |text: &OsString| text.clone().into_vec();
        let form = match options {
            OutputOptions { quoted_json: true, .. } => Form::QuotedJson,
            OutputOptions { json: true, .. } => Form::Json,
            OutputOptions { csv: true, .. } => Form::Csv,
            OutputOptions { no_raw: true, .. } => Form::Standard,
            OutputOptions { raw: true, .. } => Form::Raw,
            _ if std::io::stdout().is_terminal() => Form::Standard,
            _ => Form::Raw,
        };
        Output {
            form,
            element_delimiter: bytes(&options.element_delimiter),
            answer_delimiter: bytes(&options.answer_delimiter),
            is_coloured: false,
            indents_documents: false,
        }
    }

    /// Formats a reply including the delimiter after it.
    pub(crate) fn format(&self, value: &Value, contents: Contents) -> Vec<u8> {
        if contents == Contents::Text {
            return raw::format(value, &self.element_delimiter);
        }
        let paint: &Paint = if self.is_coloured { &paint } else { &leave_plain };
        let is_document = contents == Contents::Documents && self.indents_documents;
        let (mut out, end) = match self.form {
            Form::Standard if is_document => {
                let document = documents::format(value, paint);
                (document.unwrap_or_else(|| render_with(value, paint)), &b"\n"[..])
            }
            Form::Standard => (render_with(value, paint), &b"\n"[..]),
            Form::Raw => (raw::format(value, &self.element_delimiter), self.answer_delimiter.as_slice()),
            Form::Csv => (csv::format(value), &b"\n"[..]),
            Form::Json => (json::format(value, json::Strings::Utf8), &b"\n"[..]),
            Form::QuotedJson => (json::format(value, json::Strings::Quoted), &b"\n"[..]),
        };
        out.extend_from_slice(end);
        out
    }
}

/// Appends a piece without a colour.
fn leave_plain(_: Piece, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
}

/// Appends a piece in the colour of its kind.
fn paint(piece: Piece, text: &[u8], out: &mut Vec<u8>) {
    let colour = match piece {
        Piece::Status => return out.extend_from_slice(text),
        Piece::Text => "\x1b[32m",
        Piece::Error => "\x1b[31m",
        Piece::Number => "\x1b[36m",
        Piece::Nothing | Piece::Label => "\x1b[90m",
    };
    out.extend_from_slice(colour.as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\x1b[0m");
}
