internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Where an agent of a fleet asks the others, and an agent alone knows by itself. Each has both answers, so that nobody
/// else asks whether there is a fleet.
struct FleetSeams: Sendable {
    let keys: any KeyReservation
    let contents: any ContentIndex
    let shares: any RateShare
    let places: any PlaceQueue
    /// They wake the lanes, and are woken by admissions.
    let signals: Signals
    /// Whether the agent begins without admitting files.
    var isDraining = false

    /// For an agent alone.
    static func local(_ journal: Journal) -> FleetSeams {
        FleetSeams(
            keys: LocalKeys(journal: journal), contents: LocalContents(), shares: LocalShares(),
            places: LocalPlaces(journal: journal), signals: Signals())
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

// MARK: - Shares

/// The queue of shares that several agents watch: one of them lists a share and admits its files, all deliver them.
protocol PlaceQueue: Sendable {
    /// Takes the shares of the configuration, before anything is watched or claimed: at the start, and at each reload.
    func begin(_ settings: Settings) async throws(JournalError)

    /// Whether the folder may be listed now; nil for a folder of this agent's own.
    func ownership(of root: WatchSettings) -> RootOwnership.Outcome?

    /// Why the folder may not be listed any longer; nil while it may.
    func objection(to root: FilePath) -> String?

    /// Which of these new files the fleet has admitted before. nil for a folder of this agent's own.
    ///
    /// - Throws: where that cannot be known now.
    func known(_ arrivals: [FoundFile]) async throws(FleetError) -> [Bool]?

    /// Admits files of a share; nil for files of this agent's own.
    func admit(_ files: [FileAdmission]) async -> [AdmissionResult]?

    /// Whether anything of the file may be sent now: its claim is this agent's.
    func maySend(_ file: FileRow) -> Bool

    /// After the journal has them and before they are relied upon: shows notes of a delivery to a successor, and asks
    /// whether the claim is still this agent's.
    ///
    /// - Throws: where it is not, or nobody can tell.
    func noted(
        _ claim: Claim, _ notes: [String: [UInt8]], replacing: Bool
    ) async throws(DeliveryError)

    /// The destination has something else under the key of a claim. - Returns: the end of the claim; nil where the usual
    /// rules decide.
    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome?

    /// A delivery of the file has ended in the journal.
    func ended(_ file: FileRow)

    /// Whether the source may be disposed of now.
    func disposal(of file: FileRow) async -> DisposalRight

    /// The disposal of the source has ended in the journal.
    func finished(_ file: FileRow)

    /// Distinguishes this agent's private names in a folder from those of others; empty in a folder of its own.
    func mark(in root: FilePath) -> String
}

enum DisposalRight: Sendable, Equatable {
    case granted
    /// Others dispose of it; the reason, in a few words.
    case left(String)
    /// Nobody can tell now.
    case unknown(String)
}

/// No folder is a share.
struct LocalPlaces: PlaceQueue {
    let journal: Journal

    /// Drops the work of a fleet that is no longer configured: others take it over.
    func begin(_ settings: Settings) async throws(JournalError) {
        try await journal.dropPlaceWork(try await journal.placeWork().map(\.file))
    }

    func ownership(of root: WatchSettings) -> RootOwnership.Outcome? { nil }
    func objection(to root: FilePath) -> String? { nil }
    func known(_ arrivals: [FoundFile]) async throws(FleetError) -> [Bool]? { nil }
    func admit(_ files: [FileAdmission]) async -> [AdmissionResult]? { nil }
    func maySend(_ file: FileRow) -> Bool { true }
    func noted(
        _ claim: Claim, _ notes: [String: [UInt8]], replacing: Bool
    ) async throws(DeliveryError) {}
    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome? { nil }
    func ended(_ file: FileRow) {}
    /// Without a fleet the work of shares is dropped; its sources are left to others.
    func disposal(of file: FileRow) async -> DisposalRight {
        if file.intent != nil { return .granted }
        return file.policy.isOfPlace ? .left("the agents of its fleet finish it") : .granted
    }
    func finished(_ file: FileRow) {}
    func mark(in root: FilePath) -> String { "" }
}
