//! Frames between processes: protocol version, length, postcard. Lengths are checked before anything is allocated.

use serde::{Deserialize, Serialize};

/// Version of the protocol; both ends must be of one release, so any difference is an error.
pub const PROTOCOL: u8 = 1;
/// Longest payload in bytes: a diskstats table of 20,000 lines fits.
pub const MAX_PAYLOAD: usize = 8 << 20;
/// Bytes before the payload: protocol version and length (u32, little-endian).
pub const HEADER: usize = 5;

/// Why a frame could not be written or read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CodecError {
    /// The other end speaks another protocol.
    #[error("protocol version {0}, expected {PROTOCOL}")]
    Protocol(u8),
    /// The payload would pass [`MAX_PAYLOAD`].
    #[error("frame of {0} bytes, the limit is {MAX_PAYLOAD}")]
    TooLong(usize),
    /// The payload is not a message.
    #[error("malformed message: {0}")]
    Malformed(postcard::Error),
}

/// Encodes `message` as one frame.
///
/// # Errors
/// [`CodecError::TooLong`] when the payload passes [`MAX_PAYLOAD`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, CodecError> {
    let mut frame = vec![PROTOCOL, 0, 0, 0, 0];
    frame = postcard::to_extend(message, frame).map_err(CodecError::Malformed)?;
    let length = frame.len() - HEADER;
    let prefix = u32::try_from(length).ok().filter(|_| length <= MAX_PAYLOAD);
    let prefix = prefix.ok_or(CodecError::TooLong(length))?;
    frame[1..HEADER].copy_from_slice(&prefix.to_le_bytes());
    Ok(frame)
}

/// Length of the payload that follows `header`.
///
/// # Errors
/// A foreign protocol version, or a length past [`MAX_PAYLOAD`].
pub fn payload_length(header: [u8; HEADER]) -> Result<usize, CodecError> {
    let [version, a, b, c, d] = header;
    if version != PROTOCOL {
        return Err(CodecError::Protocol(version));
    }
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > MAX_PAYLOAD {
        return Err(CodecError::TooLong(length));
    }
    Ok(length)
}

/// Decodes one payload that is borrowed for no longer than the call; bytes left over are an error.
///
/// # Errors
/// As [`decode`].
pub fn decode_owned<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, CodecError> {
    decode(payload)
}

/// Decodes one payload; bytes left over are an error.
///
/// # Errors
/// [`CodecError::Malformed`] when the payload is not exactly one message.
pub fn decode<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, CodecError> {
    let (message, rest) = postcard::take_from_bytes(payload).map_err(CodecError::Malformed)?;
    if rest.is_empty() { Ok(message) } else { Err(CodecError::Malformed(postcard::Error::DeserializeBadEncoding)) }
}
