//! Holds machine-readable output to the schemas in docs/schemas: what they demand is there, and
//! nothing is there that they do not name.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use jsonschema::Registry;
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
const SCHEMAS: [&str; 8] = [
    "abort",
    "by-hand",
    "plan",
    "promotion-event",
    "promotion-result",
    "promotion-waiting",
    "status",
    "version",
];

/// A schema, which allows no more fields than it names.
pub(crate) fn schema(name: &str) -> Result<Value> {
    let path = Path::new(FOLDER).join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    let mut schema = serde_json::from_str(&text)?;
    close(&mut schema);
    Ok(schema)
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Fails unless a document is as its schema says.
pub(crate) fn ensure_fits(name: &str, document: &Value) -> Result<()> {
    let mut registry = Registry::new();
    for name in SCHEMAS {
        let schema = schema(name)?;
        let id = schema["$id"].as_str().unwrap_or_default().to_owned();
        registry = registry.add(id, schema)?;
    }
    let registry = registry.prepare()?;
    let validator = jsonschema::options().with_registry(&registry).build(&schema(name)?)?;
    validator.validate(document).map_err(|error| {
        anyhow!("{document} is not as {name}.json says: {error} ({})", error.instance_path())
    })
}

/// The closed lists are those of the program.
#[test]
fn the_states_are_all_listed() -> Result<()> {
    let states = schema("status")?["properties"]["zones"]["items"]["properties"]["state"].clone();
    assert_eq!(states, json!({"enum": zone_rollout_core::zone::ZoneState::NAMES}));
    Ok(())
}
