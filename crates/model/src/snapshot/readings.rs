//! What every reading of a subject goes through, from one table a subject.

/// Gives a subject its `sources`, `troubles`, `apply`, `stall` and `expire` from a table of its readings: the field, the
/// source, and how the source's sample becomes the field's value. A row without the last part is filled otherwise.
macro_rules! readings {
    ($subject:ident { $($field:ident: $source:ident $(= $pattern:pat => $value:expr)?,)+ }) => {
        impl $subject {
            /// The state of every source that was asked for or answered.
            pub fn sources(&self) -> Vec<super::SourceStatus> {
                let mut all = vec![$(super::SourceStatus::of(Source::$source, &self.$field, &self.stats),)+];
                // What the agent counts itself is no source of the subject's.
                all.retain(|status| status.state != "never" && status.source != Source::DriveCommands);
                all
            }

            /// The sources that were asked in vain the last time; allocates nothing when there is none.
            pub fn troubles(&self) -> Vec<super::Trouble<'_>> {
                let mut all = Vec::new();
                $(super::Trouble::note(&mut all, Source::$source, &self.$field);)+
                all
            }

            /// Takes in the end of one read; false when it is of no source of this subject.
            pub(super) fn apply(
                &mut self,
                source: Source,
                began: BootTime,
                ended: BootTime,
                outcome: crate::event::Outcome,
            ) -> bool {
                match source {
                    $($(Source::$source => super::settle(&mut self.$field, began, ended, outcome, |sample| {
                        match sample {
                            $pattern => Some($value),
                            _ => None,
                        }
                    }),)?)+
                    _ => false,
                }
            }

            /// Takes in that a read, begun at `since`, passed its deadline.
            pub(super) fn stall(&mut self, source: Source, since: BootTime) -> bool {
                match source {
                    $(Source::$source => self.$field.stall(since),)+
                    _ => return false,
                }
                true
            }

            /// Turns values older than the limit of their source into stalled ones.
            pub(super) fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> std::time::Duration) {
                $(self.$field.expire(now, limit(Source::$source));)+
            }
        }
    };
}

pub(super) use readings;
