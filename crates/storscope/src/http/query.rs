//! The part of a URL behind `?`. What is not known, or given twice, is refused: an answer to another question than was asked
//! misleads.

/// Longest part of a query that a refusal repeats, in characters.
const MAX_SHOWN: usize = 40;

/// Paths that know a query.
const PATHS: [&str; 2] = ["/status", "/status.json"];

/// What is asked of a status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Only this device or controller, by kernel name.
    pub(super) device: Option<String>,
    /// Every row.
    pub(super) all: bool,
}

impl Query {
    /// `device=NAME` and `all` of `/status`; kernel names need no percent-decoding but for the slash.
    ///
    /// # Errors
    /// What is wrong with the query, in one line.
    pub(super) fn of(path: &str, query: Option<&str>) -> Result<Self, String> {
        let mut out = Self::default();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            if !PATHS.contains(&path) {
                return Err(format!("unknown query {}; none is known here", shown(part)));
            }
            match part.split_once('=') {
                Some(("device", _)) if out.device.is_some() => {
                    return Err("device is given twice; it takes one name".to_owned());
                }
                Some(("device", name)) => out.device = Some(name.replace("%2F", "/").replace("%2f", "/")),
                None if part == "all" && out.all => return Err("all is given twice".to_owned()),
                None if part == "all" => out.all = true,
                _ => return Err(format!("unknown query {}; device=NAME and all are known", shown(part))),
            }
        }
        Ok(out)
    }
}

/// What may be repeated of a text of the client's.
pub(super) fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_taken() {
        let of = |query: &str| Query::of("/status", Some(query)).unwrap();
        assert_eq!(Query::of("/metrics", None), Ok(Query::default()));
        assert_eq!(of(""), Query::default());
        assert_eq!(of("all&&device=cciss%2Fc0d0"), Query { device: Some("cciss/c0d0".to_owned()), all: true });
    }

    #[test]
    fn what_is_not_known_or_given_twice_is_refused() {
        for (path, query, part) in [
            ("/status", "device=a&device=b", "device is given twice"),
            ("/status", "device=a&device=a", "device is given twice"),
            ("/status", "all&all", "all is given twice"),
            ("/status", "all=1", "unknown query all=1"),
            ("/status", "device", "unknown query device"),
            ("/status.json", "Device=a", "unknown query Device=a"),
            ("/metrics", "name[]=x", "unknown query name[]=x; none"),
            ("/healthz", "all", "unknown query all; none"),
        ] {
            let why = Query::of(path, Some(query)).unwrap_err();
            assert!(why.contains(part), "{path}?{query}: {why}");
        }
    }
}
