//! An element of a list: in its list, to be added, or removed.

use std::sync::Arc;

use ember_protocol::{Args, Reply};

use crate::types::listpack;

/// An element in its list.
#[derive(Clone, Copy, Debug)]
pub enum Element<'a> {
    /// The canonical text of this integer.
    Integer(i64),
    /// Bytes inside a node.
    Bytes(&'a [u8]),
    /// Bytes too large for the listpack of a node, in an allocation of their own.
    Large(&'a Arc<Vec<u8>>),
}

impl<'a> Element<'a> {
    /// Returns the bytes of the element; `digits` is the buffer for those of an integer.
    pub fn bytes<'b>(self, digits: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Element::Integer(number) => digits.format(number).as_bytes(),
            Element::Bytes(bytes) => bytes,
            Element::Large(bytes) => bytes,
        }
    }

    /// Appends the element to `reply` as a bulk string; large ones are shared, not copied.
    #[inline]
    pub fn write(self, reply: &mut Reply) {
        match self {
            Element::Integer(number) => reply.bulk_integer(number),
            Element::Bytes(bytes) => reply.bulk(bytes),
            Element::Large(bytes) => reply.bulk_shared(bytes),
        }
    }

    /// Returns the element independent of its list.
    pub fn to_owned(self) -> OwnedElement {
        match self {
            Element::Integer(number) => {
                OwnedElement::Bytes(itoa::Buffer::new().format(number).as_bytes().to_vec())
            }
            Element::Bytes(bytes) => OwnedElement::Bytes(bytes.to_vec()),
            Element::Large(bytes) => OwnedElement::Large(Arc::clone(bytes)),
        }
    }
}

impl<'a> From<listpack::Element<'a>> for Element<'a> {
    #[inline]
    fn from(element: listpack::Element<'a>) -> Element<'a> {
        match element {
            listpack::Element::Integer(number) => Element::Integer(number),
            listpack::Element::Bytes(bytes) => Element::Bytes(bytes),
        }
    }
}

/// Bytes to compare with elements.
#[derive(Clone, Copy, Debug)]
pub struct Needle<'a> {
    bytes: &'a [u8],
    packed: listpack::Needle<'a>,
}

impl<'a> Needle<'a> {
    /// Prepares bytes for comparisons.
    pub fn new(bytes: &'a [u8]) -> Needle<'a> {
        Needle { bytes, packed: listpack::Needle::new(bytes) }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether `element` of a listpack consists of these bytes.
    #[inline]
    pub(super) fn matches_packed(&self, element: listpack::Element<'_>) -> bool {
        self.packed.matches(element)
    }

    /// Returns whether `element` consists of these bytes.
    #[inline]
    pub fn matches(&self, element: Element<'_>) -> bool {
        match element {
            Element::Integer(number) => self.packed.matches(listpack::Element::Integer(number)),
            Element::Bytes(bytes) => self.bytes == bytes,
            Element::Large(bytes) => self.bytes == bytes.as_slice(),
        }
    }
}

/// An element to be added.
#[derive(Clone, Copy, Debug)]
pub enum NewElement<'a> {
    /// Bytes to copy.
    Bytes(&'a [u8]),
    /// Bytes in their own buffer, which becomes the element if it is large enough.
    Large(&'a Arc<Vec<u8>>),
}

impl<'a> NewElement<'a> {
    /// Returns the element in argument `arg`.
    pub fn argument(args: Args<'a>, arg: usize) -> NewElement<'a> {
        match args.shared(arg) {
            Some(bytes) => NewElement::Large(bytes),
            None => NewElement::Bytes(args.at(arg)),
        }
    }

    /// Returns the bytes.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            NewElement::Bytes(bytes) => bytes,
            NewElement::Large(bytes) => bytes,
        }
    }

    /// Returns the bytes of a shared pointer.
    pub(super) fn into_shared(self) -> Arc<Vec<u8>> {
        match self {
            NewElement::Bytes(bytes) => Arc::new(bytes.to_vec()),
            NewElement::Large(bytes) => Arc::clone(bytes),
        }
    }
}

/// An element independent of any list.
#[derive(Clone, Debug)]
pub enum OwnedElement {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Bytes that may be shared.
    Large(Arc<Vec<u8>>),
}

impl OwnedElement {
    /// Returns the element as one to be added.
    pub fn as_new(&self) -> NewElement<'_> {
        match self {
            OwnedElement::Bytes(bytes) => NewElement::Bytes(bytes),
            OwnedElement::Large(bytes) => NewElement::Large(bytes),
        }
    }

    /// Appends the element to `reply` as a bulk string; large ones are shared, not copied.
    pub fn write(&self, reply: &mut Reply) {
        match self {
            OwnedElement::Bytes(bytes) => reply.bulk(bytes),
            OwnedElement::Large(bytes) => reply.bulk_shared(bytes),
        }
    }
}
