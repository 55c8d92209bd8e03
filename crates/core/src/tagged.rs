//! Tables in which one key selects a structure, and so the other keys.

use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer};

/// Implements `Deserialize` for an enumeration whose variants have structures of the same name. A
/// key of the table selects the variant.
///
/// serde's own implementation reads the table into a buffer first, and errors in a buffer have no
/// path. This one reads all keys first, and then checks those that the variant has.
///
/// The keys of all variants are listed with their types, then those of each variant. A field that
/// is no `Option` needs its key; after `default`, an absent key has the value of the default.
///
/// ```
/// #[derive(Debug)]
/// enum Shape {
///     Circle(Circle),
///     RoundedBox(RoundedBox),
/// }
/// #[derive(Debug)]
/// struct Circle {
///     radius: u32,
/// }
/// #[derive(Debug, Default)]
/// struct RoundedBox {
///     width: u32,
///     radius: u32,
/// }
/// airpath_core::deserialize_by_key! {
///     Shape by kind { width: u32, radius: u32 }
///     Circle { radius }
///     RoundedBox default { width, radius }
/// }
///
/// let error = |text| toml::from_str::<Shape>(text).expect_err("wrong").message().to_owned();
/// assert_eq!(error("kind = 3"), "invalid type: integer `3`, expected a string");
/// assert_eq!(error("kind = 'circle'"), "missing field `radius`");
/// assert_eq!(error("kind = 'circle'\nwidth = 3"), "unknown field `width`, expected `kind` or `radius`");
/// assert!(matches!(toml::from_str("kind = 'rounded-box'"), Ok(Shape::RoundedBox(RoundedBox { width: 0, .. }))));
/// ```
#[macro_export]
macro_rules! deserialize_by_key {
    (
        $name:ident by $selector:ident { $($key:ident: $of:ty),+ $(,)? }
        $($variant:ident $($default:ident)? { $($own:ident),+ $(,)? })+
    ) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(::serde::Deserialize)]
                #[serde(rename_all = "kebab-case")]
                enum Selector {
                    $($variant,)+
                }

                #[derive(::serde::Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Keys {
                    #[serde(deserialize_with = "::airpath_core::tagged::name")]
                    $selector: Selector,
                    $($key: Option<$of>,)+
                }

                let keys = Keys::deserialize(deserializer)?;
                let given = [$((stringify!($key), keys.$key.is_some()),)+];
                match keys.$selector {
                    $(Selector::$variant => {
                        $crate::tagged::refuse_others(&given, &[stringify!($selector), $(stringify!($own),)+])?;
                        Ok(Self::$variant($crate::deserialize_by_key!(@read keys $variant $($default)? { $($own)+ })))
                    })+
                }
            }
        }
    };
    (@read $keys:ident $variant:ident { $($own:ident)+ }) => {
        $variant { $($own: $crate::tagged::Field::of($keys.$own, stringify!($own))?,)+ }
    };
    (@read $keys:ident $variant:ident default { $($own:ident)+ }) => {{
        let mut read = $variant::default();
        $(if let Some(value) = $keys.$own {
            read.$own = value.into();
        })+
        read
    }};
}

/// Reads a name, and then what has it. Formats have no clear error for an enumeration with a value
/// that is no text.
///
/// # Errors
/// If the value is no text, or nothing has this name.
pub fn name<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(deserializer)?.into_deserializer())
}

/// A field with values of a key of type `T`.
pub trait Field<T>: Sized {
    /// Its value, from that of the key.
    ///
    /// # Errors
    /// If it needs a value and there is none.
    fn of<E: Error>(value: Option<T>, key: &'static str) -> Result<Self, E>;
}

impl<T> Field<T> for T {
    fn of<E: Error>(value: Option<T>, key: &'static str) -> Result<T, E> {
        value.ok_or_else(|| E::missing_field(key))
    }
}

impl<T> Field<T> for Option<T> {
    fn of<E: Error>(value: Self, _: &'static str) -> Result<Self, E> {
        Ok(value)
    }
}

/// Refuses a key that was `given` if it is not `known`.
///
/// # Errors
/// The first of those keys.
pub fn refuse_others<E: Error>(given: &[(&str, bool)], known: &'static [&'static str]) -> Result<(), E> {
    let other = given.iter().find(|(key, is_given)| *is_given && !known.contains(key));
    other.map_or(Ok(()), |(key, _)| Err(E::unknown_field(key, known)))
}
