//! hyper's own refusals of heads that it cannot read have no body: what is written is looked at, and gets one.

/// The body for each status by which hyper refuses a head.
const WORDS: [(&[u8], &str); 3] = [
    (b"400", "the request is not HTTP/1.1 as it is understood here\n"),
    (b"414", "the path is too long\n"),
    (b"431", "the request head is too long, or has too many fields\n"),
];

/// The field that tells that there is no body.
const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";

/// `written` with a body, if it is such a refusal: an answer of a route has a body of its own.
pub(super) fn worded(written: &[u8]) -> Option<Vec<u8>> {
    let status = written.strip_prefix(b"HTTP/1.1 ").or_else(|| written.strip_prefix(b"HTTP/1.0 "))?.get(..3)?;
    let (_, words) = WORDS.iter().find(|(of, _)| *of == status)?;
    let at = written.windows(EMPTY.len()).position(|part| part.eq_ignore_ascii_case(EMPTY))?;
    let (before, after) = (written.get(..at)?, written.get(at + EMPTY.len()..)?);
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    let field = format!(
        "\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\ncontent-length: {}\r\n",
        words.len()
    );
    Some([before, field.as_bytes(), after, words.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_gets_a_body_of_its_length() {
        for (status, part) in [("400 Bad Request", "HTTP/1.1"), ("414 URI Too Long", "path"), ("431 x", "head")] {
            for fields in [
                "connection: close\r\ncontent-length: 0\r\ndate: now\r\n",
                "Content-Length: 0\r\n",
                "date: now\r\ncontent-length: 0\r\n",
            ] {
                let whole = worded(format!("HTTP/1.1 {status}\r\n{fields}\r\n").as_bytes()).unwrap();
                let text = String::from_utf8(whole).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
                assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
                assert!(body.contains(part) && body.lines().count() == 1 && body.ends_with('\n'), "{body}");
                assert_eq!(head.contains("date: now"), fields.contains("date"));
            }
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nwhat\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 57\r\n\r\n",
            "400",
            "",
        ] {
            assert_eq!(worded(text.as_bytes()), None, "{text}");
        }
    }
}
