//! The client's side: requests written, replies read as values, and both as people read and type them.

mod secrets;
mod terminal;
mod value;
mod words;

pub use crate::request::encode_command;
pub use secrets::SECRET_PARAMETERS;
pub use terminal::{Paint, Piece, quote, render, render_with};
pub use value::{Value, read_value};
pub use words::split_arguments;
