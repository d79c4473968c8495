internal import InletCore
internal import InletJournal
internal import InletLinux

/// Until when `existing: adopt` asks how old the files of a removable volume are.
///
/// FAT and exFAT keep no time of change: what was copied to such a volume while it was elsewhere looks as old as it was there,
/// although it came after the volume was first watched. All that was there then is in the journal once it has been listed.
struct FirstListing: Sendable {
    let journal: Journal
    /// `Volume.key`.
    let volume: String?
    /// Of its times, in nanoseconds.
    let tolerance: Int64

    /// Whether age is asked about until then only.
    var counts: Bool { volume != nil && tolerance > 0 }

    func isOver() async throws(JournalError) -> Bool {
        guard counts, let volume else { return false }
        return try await journal.wasListed(volume)
    }

    /// All that was there is in the journal, or was left out for good.
    func end() async throws(JournalError) {
        guard counts, let volume else { return }
        try await journal.setListed(volume, at: .now)
    }
}
