internal import InletCore
internal import InletJournal
internal import InletPipelines

/// Where an agent of a fleet asks the others, and an agent alone knows by itself. Each has both answers, so that nobody
/// else asks whether there is a fleet.
struct FleetSeams: Sendable {
    let keys: any KeyReservation
    let contents: any ContentIndex
    let shares: any RateShare
    /// They wake the lanes, and are woken by admissions.
    let signals: Signals
    /// Whether the agent begins without admitting files.
    var isDraining = false

    /// For an agent alone.
    static func local(_ journal: Journal) -> FleetSeams {
        FleetSeams(
            keys: LocalKeys(journal: journal), contents: LocalContents(), shares: LocalShares(), signals: Signals())
    }
}

// MARK: - Keys

/// Decides whether a delivery may have its key at a destination.
protocol KeyReservation: Sendable {
    /// Says for which destinations keys must be asked for, before any file is admitted for them.
    func begin(at destinations: [Destination], _ settings: Settings) async throws(JournalError)

    /// The destination has something else under the key of a claim: its delivery gets the next name.
    ///
    /// - Returns: the end of the claim; nil where the usual rules decide.
    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome?
}

/// The journal alone decides: no key waits, and one that is lost fails.
struct LocalKeys: KeyReservation {
    let journal: Journal

    /// Frees deliveries that waited for a fleet which is no longer configured.
    func begin(at destinations: [Destination], _ settings: Settings) async throws(JournalError) {
        try await journal.reserveKeys(at: [:])
    }

    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome? { nil }
}

// MARK: - Contents

/// Decides which agent brings a content to a destination, for routes with `dedupe`.
protocol ContentIndex: Sendable {
    /// Whether it must be asked before a file is sent: such files are not sent in bursts.
    func isAsked(about file: FileRow) -> Bool

    /// Asked before anything of a claim is sent.
    func turn(of claim: Claim, at destination: Destination) async -> ContentTurn

    /// A claim has ended after it was sent, or could not be.
    func ended(_ claim: Claim, _ outcome: ClaimOutcome)

    /// A person had the object of a delivery deleted at its destination.
    func deleted(_ delivery: DeliveryRow, of file: FileRow)
}

enum ContentTurn: Sendable {
    case send
    /// Another agent has brought it: nothing is sent.
    case link(Proof)
    /// Another agent, of this name, sends it now.
    case wait(by: String)
}

/// The journal has decided when it made the claim.
struct LocalContents: ContentIndex {
    func isAsked(about file: FileRow) -> Bool { false }
    func turn(of claim: Claim, at destination: Destination) async -> ContentTurn { .send }
    func ended(_ claim: Claim, _ outcome: ClaimOutcome) {}
    func deleted(_ delivery: DeliveryRow, of file: FileRow) {}
}

// MARK: - Limits

/// This agent's part of a limit that several agents share. `BandwidthControl` bounds the rate.
protocol RateShare: Sendable {
    /// The part of `room` that may be claimed.
    func bounded(_ room: ClaimCapacity) -> ClaimCapacity
}

/// Limits are the agent's own.
struct LocalShares: RateShare {
    func bounded(_ room: ClaimCapacity) -> ClaimCapacity { room }
}
