//! From anything that serializes to a [`Tree`].

use std::fmt::Display;

use indexmap::IndexMap;
use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

use super::{PayloadError, Tree, scan};

/// How `serde_json` hands over what is JSON text already: a number where its digits are kept as they are, which any crate
/// of a build may ask for, and a raw value.
const VERBATIM: [&str; 2] = ["$serde_json::private::Number", "$serde_json::private::RawValue"];

type Made = Result<Tree, PayloadError>;

impl ser::Error for PayloadError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Refused(message.to_string())
    }
}

/// Makes the tree of one value that may be nested `room` deep.
#[derive(Clone, Copy)]
pub(super) struct TreeSerializer {
    pub(super) room: usize,
}

impl TreeSerializer {
    fn below(self) -> Result<Self, PayloadError> {
        Ok(Self { room: self.room.checked_sub(1).ok_or(PayloadError::TooDeep)? })
    }

    fn list(self, variant: Option<&'static str>) -> Result<ListSerializer, PayloadError> {
        Ok(ListSerializer { below: self.below()?, items: Vec::new(), variant })
    }

    fn map(self, variant: Option<&'static str>) -> Result<MapSerializer, PayloadError> {
        Ok(MapSerializer {
            below: self.below()?,
            members: IndexMap::new(),
            name: None,
            variant,
            is_verbatim: false,
        })
    }
}

/// A variant with data is an object of one member, as serde has it in JSON.
fn tagged(variant: Option<&'static str>, inside: Tree) -> Tree {
    match variant {
        Some(name) => Tree::Map(IndexMap::from([(name.to_owned(), inside)])),
        None => inside,
    }
}

macro_rules! whole {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, value: $kind) -> Made { Ok(Tree::Whole(value.to_string())) })*
    };
}

impl ser::Serializer for TreeSerializer {
    type Ok = Tree;
    type Error = PayloadError;
    type SerializeSeq = ListSerializer;
    type SerializeTuple = ListSerializer;
    type SerializeTupleStruct = ListSerializer;
    type SerializeTupleVariant = ListSerializer;
    type SerializeMap = MapSerializer;
    type SerializeStruct = MapSerializer;
    type SerializeStructVariant = MapSerializer;

    whole! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
    }

    fn serialize_bool(self, value: bool) -> Made {
        Ok(Tree::Bool(value))
    }

    /// As JSON writes it: the fewest digits of the short float, not those of the long one it becomes.
    fn serialize_f32(self, value: f32) -> Made {
        Ok(Tree::Float(value.to_string().parse().unwrap_or(f64::NAN)))
    }

    fn serialize_f64(self, value: f64) -> Made {
        Ok(Tree::Float(value))
    }

    fn serialize_char(self, value: char) -> Made {
        Ok(Tree::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Made {
        Ok(Tree::Text(value.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Made {
        Err(PayloadError::NoForm("bytes"))
    }

    fn serialize_none(self) -> Made {
        Ok(Tree::Null)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Made {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made {
        Ok(Tree::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made {
        Ok(Tree::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made {
        Ok(Tree::Text(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Made {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Made {
        Ok(tagged(Some(variant), value.serialize(self.below()?)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ListSerializer, PayloadError> {
        self.list(None)
    }

    fn serialize_tuple(self, _: usize) -> Result<ListSerializer, PayloadError> {
        self.list(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<ListSerializer, PayloadError> {
        self.list(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<ListSerializer, PayloadError> {
        self.list(Some(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MapSerializer, PayloadError> {
        self.map(None)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<MapSerializer, PayloadError> {
        match VERBATIM.contains(&name) {
            true => Ok(MapSerializer {
                is_verbatim: true,
                ..Self { room: self.room.saturating_add(1) }.map(None)?
            }),
            false => self.map(None),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<MapSerializer, PayloadError> {
        self.map(Some(variant))
    }
}

pub(super) struct ListSerializer {
    below: TreeSerializer,
    items: Vec<Tree>,
    variant: Option<&'static str>,
}

macro_rules! list {
    ($($kind:ident $method:ident)*) => {
        $(impl $kind for ListSerializer {
            type Ok = Tree;
            type Error = PayloadError;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), PayloadError> {
                self.items.push(value.serialize(self.below)?);
                Ok(())
            }

            fn end(self) -> Made {
                Ok(tagged(self.variant, Tree::List(self.items)))
            }
        })*
    };
}

list! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

pub(super) struct MapSerializer {
    below: TreeSerializer,
    members: IndexMap<String, Tree>,
    name: Option<String>,
    variant: Option<&'static str>,
    /// Whether its one member is JSON text.
    is_verbatim: bool,
}

impl MapSerializer {
    fn made(self) -> Made {
        match self.members.values().next() {
            Some(Tree::Text(text)) if self.is_verbatim => {
                Tree::read_value(scan::one_value(text)?, self.below.room.saturating_add(1))
            }
            _ => Ok(tagged(self.variant, Tree::Map(self.members))),
        }
    }
}

impl SerializeMap for MapSerializer {
    type Ok = Tree;
    type Error = PayloadError;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), PayloadError> {
        self.name = Some(match key.serialize(self.below)? {
            Tree::Text(name) | Tree::Whole(name) => name,
            _ => return Err(PayloadError::NoForm("a map's key that is no text")),
        });
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), PayloadError> {
        let name = self.name.take().ok_or(PayloadError::NoForm("a value without a key"))?;
        self.members.insert(name, value.serialize(self.below)?);
        Ok(())
    }

    fn end(self) -> Made {
        Ok(tagged(self.variant, Tree::Map(self.members)))
    }
}

macro_rules! fields {
    ($($kind:ident)*) => {
        $(impl $kind for MapSerializer {
            type Ok = Tree;
            type Error = PayloadError;

            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), PayloadError> {
                self.members.insert(name.to_owned(), value.serialize(self.below)?);
                Ok(())
            }

            fn end(self) -> Made {
                self.made()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }
