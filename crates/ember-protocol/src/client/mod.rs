//! The client side: encoded requests, parsed replies, and the textual forms of both for users.

mod secrets;
mod terminal;
mod value;
mod words;

pub use crate::request::encode_command;
pub use secrets::SECRET_PARAMETERS;
pub use terminal::{Paint, Piece, quote, render, render_with};
pub use value::{Value, read_value};
pub use words::split_arguments;
