//! The JSON Schema (draft 2020-12) of `/status.json`, from one table of fields.

mod controller;
mod device;
mod status;

use serde_json::{Map, Value, json};

/// An object of the schema.
struct Definition {
    name: &'static str,
    about: &'static str,
    /// Name, type and meaning.
    fields: &'static [(&'static str, Type, &'static str)],
}

/// The type of a field.
enum Type {
    Text,
    /// RFC 3339.
    Time,
    /// A counter of 128 bits.
    Big,
    Count,
    Integer,
    Number,
    Flag,
    Constant(u32),
    Words(&'static [&'static str]),
    /// Counts by name.
    Counts,
    Of(&'static str),
    List(&'static Type),
    Maybe(&'static Type),
}

/// The schema as indented text, ending in a line feed.
pub fn status_schema() -> String {
    let mut definitions = Map::new();
    for definition in status::STATUS.iter().chain(device::DEVICE).chain(controller::CONTROLLER) {
        definitions.insert(definition.name.to_owned(), object(definition));
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "storscope status",
        "description": format!(
            "What storscope says of a host: schema {}. Every field is always there; null is not available, and sources \
             says why. Times are RFC 3339 in UTC, ages and durations seconds, shares 0 to 1. Counters of 128 bits are \
             strings of digits. A later agent of the same schema may add fields.",
            crate::json::SCHEMA
        ),
        "$ref": "#/$defs/Status",
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

fn object(definition: &Definition) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, kind, description) in definition.fields {
        let mut of = value(kind);
        if let Value::Object(of) = &mut of {
            of.insert("description".to_owned(), json!(description));
        }
        properties.insert((*name).to_owned(), of);
        required.push(*name);
    }
    json!({
        "type": "object",
        "description": definition.about,
        "properties": properties,
        "required": required,
    })
}

fn value(kind: &Type) -> Value {
    match kind {
        Type::Text => json!({ "type": "string" }),
        Type::Time => json!({ "type": "string", "format": "date-time" }),
        Type::Big => json!({ "type": "string", "pattern": "^[0-9]+$" }),
        Type::Count => json!({ "type": "integer", "minimum": 0 }),
        Type::Integer => json!({ "type": "integer" }),
        Type::Number => json!({ "type": "number" }),
        Type::Flag => json!({ "type": "boolean" }),
        Type::Constant(number) => json!({ "type": "integer", "const": number }),
        Type::Words(words) => json!({ "type": "string", "enum": words }),
        Type::Counts => json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } }),
        Type::Of(name) => json!({ "$ref": format!("#/$defs/{name}") }),
        Type::List(of) => json!({ "type": "array", "items": value(of) }),
        Type::Maybe(of) => json!({ "anyOf": [value(of), { "type": "null" }] }),
    }
}
