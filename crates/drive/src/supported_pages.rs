//! Supported Log Pages log (00h, NVMe 2.0).

use zerocopy::little_endian::U32;

use crate::command::LogPage;
use crate::error::{Implausible, PageError};
use crate::layout::{refuse_uniform, view};

const PAGES: usize = 256;

/// Which log pages a controller says that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedPages([bool; PAGES]);

impl SupportedPages {
    /// Decodes the 1024-byte page.
    ///
    /// # Errors
    /// [`PageError`]: short, of one byte value only, or without page 02h, which every controller that serves I/O has:
    /// such a list would silence the drive's health.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::SupportedPages.name();
        let log: &[U32; PAGES] = view(page, bytes)?;
        refuse_uniform(page, bytes)?;
        let supported = log.map(|entry| entry.get() & 1 != 0);
        if !supported[usize::from(LogPage::SmartHealth.id())] {
            return Err(PageError::Implausible {
                page,
                reason: Implausible::Fields("it does not list 02h, which every controller has"),
            });
        }
        Ok(Self(supported))
    }

    /// The controller has this page.
    #[must_use]
    pub fn contains(&self, id: u8) -> bool {
        self.0[usize::from(id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[usize]) -> Vec<u8> {
        let mut page = vec![0; 1024];
        for id in ids {
            page[id * 4] = 1;
        }
        page
    }

    #[test]
    fn listed_pages_are_supported_and_others_not() {
        let mut bytes = page(&[0, 1, 2, 3, 0xc0]);
        // Bit 1 alone is about index offsets.
        bytes[6 * 4] = 2;
        let pages = SupportedPages::decode(&bytes).unwrap();
        assert!(pages.contains(0xc0) && pages.contains(2));
        assert!(!pages.contains(6) && !pages.contains(0xff));
    }

    #[test]
    fn a_list_without_health_is_not_believed() {
        assert!(matches!(SupportedPages::decode(&page(&[0, 1])), Err(PageError::Implausible { .. })));
        assert!(SupportedPages::decode(&page(&[2])[..1020]).is_err());
        assert!(SupportedPages::decode(&[0xff; 1024]).is_err());
    }
}
