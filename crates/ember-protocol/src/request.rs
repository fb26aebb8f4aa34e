//! Encodes requests as arrays of bulk strings, the form that every server accepts.

/// Appends a command in the form that every server accepts.
pub fn encode_command<A: AsRef<[u8]>>(words: &[A], to: &mut Vec<u8>) {
    push_command_head(words.len(), to);
    words.iter().for_each(|word| push_word(word.as_ref(), to));
}

/// Begins a command of `words` words, which must follow.
#[inline]
pub fn push_command_head(words: usize, to: &mut Vec<u8>) {
    push_head(b'*', words, to);
}

/// Appends a word of a command.
#[inline]
pub fn push_word(word: &[u8], to: &mut Vec<u8>) {
    begin_word(word.len(), to);
    to.extend_from_slice(word);
    to.extend_from_slice(b"\r\n");
}

/// Begins a word of `bytes` bytes, which must follow, and then a line end.
#[inline]
pub(crate) fn begin_word(bytes: usize, to: &mut Vec<u8>) {
    push_head(b'$', bytes, to);
}

#[inline]
fn push_head(mark: u8, count: usize, to: &mut Vec<u8>) {
    to.push(mark);
    to.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    to.extend_from_slice(b"\r\n");
}
