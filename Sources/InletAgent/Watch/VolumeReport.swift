package import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// The report on a card once everything on it has ended, for the log and for notifications.
package struct VolumeReport: Sendable, Equatable {
    package var root: FilePath
    /// Its name, for ever.
    package var volume: String
    /// Delivered files, and the sum of their sizes.
    package var files = 0
    package var bytes: Int64 = 0
    package var isSafe = false
    /// Whether it stays so until a person does something.
    package var needsSomebody = false
    /// The sentence that is seen from three metres.
    package var headline = ""
    /// `CardVerdict.word`
    package var verdict = ""
    package var lines: [CardLine] = []
    /// Files that were not delivered.
    package var unproved = 0
    /// Files that a destination has lost or changed.
    package var missing = 0
    /// Files that wait for their marker.
    package var unmarked = 0
    /// Unreadable files and folders: their content is unknown.
    package var unread = 0
    /// Files that match no route, and entries that are never read.
    package var ignored = 0
    /// All other files on the card, inside of the watched folder and outside.
    package var others = 0
    /// The page with the card; nil where other machines do not reach it.
    package var link: String?
    /// Its labels, by a person.
    package var labels = CardLabels()
    /// Its stay in the reader: the same is not told twice of one.
    var insertion: Int64 = 0

    init(root: FilePath, volume: String) { (self.root, self.volume) = (root, volume) }

    init(root: FilePath, _ insertion: InsertionRow, _ verdict: CardVerdict, _ facts: CardFacts, _ lines: [CardLine]) {
        (self.root, volume, self.insertion) = (root, insertion.card.name, insertion.id)
        labels = insertion.labels
        (files, bytes) = (facts.accounted, facts.accountedBytes)
        (isSafe, needsSomebody) = (verdict.isSafe, verdict.needsSomebody)
        (headline, self.verdict, self.lines) = (verdict.headline, verdict.word, lines)
        (unproved, unmarked, unread) = (facts.failed + facts.short, facts.unmarked, facts.unread)
        missing = facts.places.reduce(0) { max($0, $1.missing) }
        ignored = facts.others.reduce(0) { $0 + ($1.reason == .outside ? 0 : $1.files) }
        others = facts.otherFiles
    }

    /// Equal reports of one stay are not sent twice.
    var word: LastWord { ("card:\(volume)", "\(insertion) \(headline) \(files)") }
}

/// Removable volumes: whether one is still there, and what its card must know of it.
extension RootLoop {
    /// Whether a pattern's folder is another one now: its findings must not pass for files of the former volume, so the
    /// root is lost. Checked after files were looked at, and before the journal takes them.
    mutating func losesPassing() -> Bool {
        guard settings.pattern != nil else { return false }
        if !isLost, FolderIdentity(settings.path) != place { loseRoot() }
        return isLost
    }

    /// Tells the card how its folder stands.
    mutating func reportVolume() async {
        do {
            try await endFirstListing()
        } catch {
            // The journal's watcher reports that; the listing ends with a later look.
        }
        guard let key = stage.volume?.key else { return }
        let isWhole = canTellVolume
        // An unreadable file keeps the card unfinished; a file that was removed meanwhile does not.
        let unmarked = isWhole ? stage.awaited.count { FileLook.mayBeThere(RootedPath(settings.path, $0)) } : 0
        let state = Card.RootState(
            isWhole: isWhole, unread: listing.unread + stage.checker.unread, unmarked: unmarked,
            ignored: stage.checker.ignored, awaitsLabels: shared.cardLabels.isHolding(key), listedAt: listing.begunAt)
        shared.cards.report(settings.path, state, hasNews: hasVolumeNews)
        hasVolumeNews = false
    }

    private mutating func endFirstListing() async throws(JournalError) {
        guard stage.adopter != nil, listing.isComplete, settler.count == 0,
            let key = stage.volume?.firstListing(stage.tolerance)
        else { return }
        try await stage.journal.setListed(key, at: .now)
        stage.adopter = nil
    }

    /// Whether all files on the volume have been seen, and none is being admitted.
    var canTellVolume: Bool {
        stage.volume?.key != nil && listing.isComplete && settler.count == 0 && units.isEmpty
    }
}
