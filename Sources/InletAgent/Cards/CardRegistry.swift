internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// A card in a reader: shared by its own loop, the watchers of its folders, and those who ask.
final class Card: Sendable {
    /// A watched folder on it.
    struct Root: Sendable {
        var settings: WatchSettings
        /// `Volume.key`
        var volume: String
        /// nil until its watcher has looked.
        var state: RootState?
        /// Files that the journal does not know, as a checksum, and when its watcher was asked to list them.
        var asked: (files: String, at: ContinuousClock.Instant)?
    }

    /// The facts that only the watcher of a folder knows.
    struct RootState: Sendable, Equatable {
        /// Whether everything in it has been seen, and nothing is being admitted.
        var isWhole = false
        var unread = 0
        var unmarked = 0
        var ignored = 0
        var awaitsLabels = false
        /// When its last full listing began.
        var listedAt: ContinuousClock.Instant?
    }

    struct State: Sendable {
        var roots: [FilePath: Root] = [:]
        /// The volumes of folders that are gone.
        var volumes: Set<String> = []
        /// Of its watched folder, also when that is gone.
        var onCard: [String]?
        var insertion: InsertionRow
        var facts = CardFacts()
        var verdict = CardVerdict.notYet(files: 0)
        var lines: [CardLine] = []
        var decidedAt: WallTime?
        /// The checksum of the files on it that Inlet did not take, as last counted.
        var others: String?
        /// Deliveries that a destination has lost, by their files; as last asked. Bounded.
        var missing: [Int64: Set<Int64>] = [:]
        /// Bytes that had been copied at two moments, for the time left.
        var pace: (since: WallTime, open: Int64)?
        /// Failed reads that are not in the journal yet.
        var readFaults = 0
        /// Recordings to check, by the checksum of the content that was looked at.
        var suspects: (inventory: String, found: [String])?
        /// Whether something has happened since the last evaluation began.
        var hasNews = true
        /// Whether an evaluation is looking at such news.
        var isLooking = false
        /// The checksum of everything on the card, as last decided about.
        var inventory = ""
        var isPulled = false
        var isOut = false
        /// Whether it is being unmounted: then nobody else reads from it.
        var isEjecting = false
        /// How many files the last report had.
        var reported: Int?
        /// Whether `on_complete` has had its try.
        var hasTriedEject = false
        /// `FreeSpace.fingerprint` before its files were last counted; nil while they are not.
        var fingerprint: UInt64?
        /// When it left the reader.
        var goneAt: WallTime?

        /// Whether its folders are watched no longer, although it is in its reader.
        var isReleased = false

        var isGone: Bool { goneAt != nil || isReleased }
    }

    /// `CardRow.key`
    let key: String
    /// The top of its file system.
    let mount: FilePath
    /// Wakes its loop.
    let signal = WakeSignal()
    /// Of its mount: another card in the same reader may have both numbers and another UUID.
    private let place: FolderIdentity
    private let volume: VolumeIdentity?
    let state: Mutex<State>

    /// Blocks.
    init(_ insertion: InsertionRow, mount: FilePath) {
        (key, self.mount) = (insertion.card.key, mount)
        (volume, place) = (VolumeIdentity.known(at: mount), FolderIdentity(mount))
        var state = State(insertion: insertion)
        // Before a restart.
        if insertion.verdict == CardVerdict.safe.word { state.reported = insertion.files }
        self.state = Mutex(state)
    }

    /// Whether its file system is mounted at `mount`: below it may lie a folder, and over it another card. Blocks.
    var isMounted: Bool {
        do throws(SystemError) {
            guard try MountTable.current().mount(of: mount.resolved)?.point == mount.resolved else { return false }
            let now = try VolumeFinder().identity(of: mount)
            return volume.map { now.isSame(as: $0) != false } ?? true && FolderIdentity(mount) == place
        } catch {
            // Nothing may be claimed of a card that cannot be found.
            return false
        }
    }

    /// The watched folder whose rules hold for the card: the first by path.
    var rules: WatchSettings? {
        state.withLock { state in state.roots.min { $0.key.string < $1.key.string }?.value.settings }
    }

    /// Changes what is known of the card, and decides by it.
    @discardableResult
    func update(_ change: (inout State) -> Void) -> CardVerdict {
        let rules = cardRules
        return state.withLock { state in
            change(&state)
            (state.facts.isPulled, state.facts.isOut) = (state.isPulled, state.isOut)
            state.facts.readErrors = state.insertion.card.errors
            // Files come: whatever was known is not the last word.
            let isWhole = state.roots.values.allSatisfy { $0.state?.isWhole == true }
            if !isWhole, !state.isOut, state.facts.stage == .known { state.facts.stage = .copying }
            (state.verdict, state.decidedAt) = (CardVerdict(state.facts, rules), .now)
            state.lines = state.facts.lines(rules, identity: state.insertion.card.identity, time: Self.clock)
            return state.verdict
        }
    }

    /// `12:59`, in local time; with its date for another day than today.
    private static func clock(_ time: WallTime) -> String {
        let (text, today) = (time.rfc3339(in: nil), WallTime.now.rfc3339(in: nil))
        let clock = text.dropFirst(11).prefix(5)
        return text.prefix(10) == today.prefix(10) ? "\(clock)" : "\(text.prefix(10)) \(clock)"
    }

    /// The rules of all its watched folders together: the strictest hold.
    var cardRules: CardRules {
        let all = state.withLock { $0.roots.values.map(\.settings.card) }
        guard var rules = all.first else { return CardRules() }
        if all.contains(where: { $0.counts == .everything }) { rules.counts = .everything }
        rules.acceptsSize = all.allSatisfy(\.acceptsSize)
        rules.secondRead =
            all.contains { $0.secondRead == .reread }
            ? .reread : all.contains { $0.secondRead == .sample } ? .sample : .off
        rules.copies = all.compactMap(\.copies).max()
        return rules
    }

    /// Something has happened: its loop looks again.
    func touch(_ change: (inout State) -> Void = { _ in }) {
        state.withLock { state in
            change(&state)
            state.hasNews = true
        }
        signal.raise()
    }
}

/// The cards that are in a reader now.
final class CardRegistry: Sendable {
    /// `departed` are cards that a person still has to hear about.
    private let state = Mutex<(cards: [Card], new: [Card], departed: [Card])>(([], [], []))
    private static let mostDeparted = 20
    /// How long a card is shown after its eject.
    private static let outTime = Duration.seconds(60)
    /// A card has come.
    let signal = WakeSignal()

    var all: [Card] { state.withLock { $0.cards } }

    /// Those, and the cards that were ejected a moment ago, or went too early and have not come back.
    func shown(at now: WallTime) -> [Card] {
        state.withLock { state in
            state.departed.removeAll { card in
                card.state.withLock { $0.isOut && now - ($0.goneAt ?? now) > Self.outTime }
            }
            return state.cards + state.departed
        }
    }

    /// The card is gone, and a person has to know how.
    func keepShowing(_ card: Card) {
        state.withLock { state in
            if state.cards.contains(where: { $0.key == card.key }) { return }
            state.departed.removeAll { $0.key == card.key }
            state.departed.append(card)
            if state.departed.count > Self.mostDeparted { state.departed.removeFirst() }
        }
    }

    /// The card with this key, name or UUID.
    subscript(_ name: String) -> Card? {
        all.first { card in
            let row = card.state.withLock { $0.insertion.card }
            return row.key == name || row.name == name || row.uuid?.lowercased() == name.lowercased()
        }
    }

    /// A watched folder of a card is there; the first one brings the card.
    func arrived(
        _ insertion: InsertionRow, mount: FilePath, _ root: FilePath, _ settings: WatchSettings, volume: String
    ) {
        let entry = Card.Root(settings: settings, volume: volume)
        let known = all.first { $0.key == insertion.card.key && $0.mount == mount }
        let card = known ?? Card(insertion, mount: mount)
        card.touch { state in
            state.roots[root] = entry
            state.onCard = state.roots.min { $0.key.string < $1.key.string }?.value.settings.onCard ?? state.onCard
            // Mounted again, perhaps before its other folders were seen to be gone.
            (state.facts.isUnknown, state.isOut) = (false, false)
        }
        // Its loop begins at once, and needs the folder's settings.
        if known == nil { add(card) }
    }

    /// A disk that no pattern fits.
    func arrivedUnknown(_ insertion: InsertionRow, mount: FilePath) -> Card {
        let card = Card(insertion, mount: mount)
        card.touch { $0.facts.isUnknown = true }
        return add(card)
    }

    @discardableResult
    private func add(_ card: Card) -> Card {
        state.withLock { state in
            state.departed.removeAll { $0.key == card.key || $0.mount == card.mount && $0.state.withLock(\.isOut) }
            state.cards.append(card)
            state.new.append(card)
        }
        signal.raise()
        return card
    }

    /// A watched folder of a card is gone, or is watched no longer; with its last folder the card is.
    ///
    /// - Parameter isStillIn: whether the card is in its reader, so that its stay goes on with the next watcher.
    func left(_ root: FilePath, isStillIn: Bool) {
        for card in all {
            let isLast = card.state.withLock { state in
                guard let entry = state.roots.removeValue(forKey: root) else { return false }
                state.volumes.insert(entry.volume)
                return state.roots.isEmpty
            }
            if isLast { leave(card, isStillIn: isStillIn) } else { card.touch() }
        }
    }

    func leave(_ card: Card, isStillIn: Bool = false) {
        state.withLock { state in
            state.cards.removeAll { $0 === card }
            state.new.removeAll { $0 === card }
        }
        card.touch { state in
            if isStillIn { state.isReleased = true } else { state.goneAt = .now }
        }
    }

    func takeNew() -> [Card] {
        state.withLock { state in
            defer { state.new = [] }
            return state.new
        }
    }

    /// Takes the report of a folder's watcher. `hasNews`: whether a file was seen, admitted or proved since the last time.
    func report(_ root: FilePath, _ now: Card.RootState, hasNews: Bool) {
        guard let card = all.first(where: { card in card.state.withLock { $0.roots[root] != nil } }) else { return }
        let isNew = card.state.withLock { $0.roots[root]?.state != now }
        if isNew { card.update { $0.roots[root]?.state = now } }
        if isNew || hasNews { card.touch() }
    }

    /// A file of a card could not be read.
    func readFailed(_ volume: String) {
        for card in all where volume.hasPrefix(card.key + "/") { card.touch { $0.readFaults += 1 } }
    }
}
