//! Content negotiation: which format, and whether gzip may be used (RFC 9110 sections 12.5.1 and 12.5.3).

use storscope_export::prometheus::Format;

/// Longest header value that is looked at, in bytes.
const MAX_VALUE: usize = 1024;

/// The exposition format that `accept` prefers; text 0.0.4 when it does not say.
pub(super) fn exposition(accept: Option<&str>) -> Format {
    let wanted = |item: &Item<'_>| {
        item.name.eq_ignore_ascii_case("application/openmetrics-text")
            && item.parameter("version").is_none_or(|version| version.starts_with('1'))
    };
    let plain = |item: &Item<'_>| matches!(item.name, "text/plain" | "text/*" | "*/*");
    let items: Vec<Item<'_>> = items(accept.unwrap_or_default()).collect();
    let best = |pick: &dyn Fn(&Item<'_>) -> bool| {
        items.iter().filter(|item| pick(item)).map(Item::quality).fold(0.0_f64, f64::max)
    };
    let open = best(&wanted);
    if open > 0.0 && open >= best(&plain) { Format::OpenMetrics } else { Format::Text }
}

/// True when `accept` names JSON before plain text.
pub(super) fn json(accept: Option<&str>) -> bool {
    let items: Vec<Item<'_>> = items(accept.unwrap_or_default()).collect();
    let best = |name: &str| {
        let named = items.iter().filter(|item| item.name.eq_ignore_ascii_case(name));
        named.map(Item::quality).fold(0.0_f64, f64::max)
    };
    let json = best("application/json");
    json > 0.0 && json >= best("text/plain")
}

/// True when `accept_encoding` allows gzip. A refusal (`q=0`) wins over `*`.
pub(super) fn gzip(accept_encoding: Option<&str>) -> bool {
    let items: Vec<Item<'_>> = items(accept_encoding.unwrap_or_default()).collect();
    let quality = |name: &str| items.iter().find(|item| item.name.eq_ignore_ascii_case(name)).map(Item::quality);
    let gzip = quality("gzip").or_else(|| quality("x-gzip")).or_else(|| quality("*")).unwrap_or(0.0);
    gzip > 0.0 && gzip >= quality("identity").unwrap_or(0.0)
}

struct Item<'a> {
    name: &'a str,
    parameters: &'a str,
}

impl<'a> Item<'a> {
    fn parameter(&self, wanted: &str) -> Option<&'a str> {
        self.parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
        })
    }

    /// 1 when not given, 0 when malformed.
    fn quality(&self) -> f64 {
        let Some(written) = self.parameter("q") else { return 1.0 };
        written.parse::<f64>().ok().filter(|quality| (0.0..=1.0).contains(quality)).unwrap_or(0.0)
    }
}

fn items(value: &str) -> impl Iterator<Item = Item<'_>> {
    let value = value.get(..value.len().min(MAX_VALUE)).unwrap_or_default();
    value.split(',').map(|item| {
        let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
        Item { name: name.trim(), parameters }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_gets_what_it_prefers() {
        let open = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        assert!(matches!(exposition(Some(open)), Format::OpenMetrics));
        let text = "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";
        assert!(matches!(exposition(Some(text)), Format::Text));
        assert!(matches!(exposition(None), Format::Text));
        assert!(matches!(exposition(Some("*/*")), Format::Text));
        assert!(matches!(exposition(Some("application/openmetrics-text;version=0.0.1")), Format::Text));
        assert!(matches!(exposition(Some("application/openmetrics-text;q=0")), Format::Text));
    }

    #[test]
    fn json_when_asked_for() {
        assert!(json(Some("application/json")));
        assert!(!json(Some("*/*")));
        assert!(!json(Some("text/plain, application/json;q=0.5")));
        assert!(!json(Some("application/json;q=nonsense")));
        assert!(!json(None));
    }

    #[test]
    fn gzip_by_quality() {
        assert!(gzip(Some("gzip")));
        assert!(gzip(Some("deflate, gzip;q=0.5")));
        assert!(gzip(Some("*")));
        assert!(!gzip(Some("gzip;q=0, *")));
        assert!(!gzip(Some("gzip;q=0.5, identity;q=1")));
        assert!(!gzip(Some("identity")));
        assert!(!gzip(None));
        assert!(!gzip(Some(&"x".repeat(100_000))));
    }
}
