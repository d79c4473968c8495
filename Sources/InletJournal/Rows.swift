internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// A row of `file`: one arrival and its fate.
package struct FileRow: Sendable, Equatable {
    /// 0 until it has been inserted.
    package var id: Int64 = 0
    package var root: FilePath
    /// Below `root`.
    package var path: FilePath
    package var identity: FileIdentity
    package var state = FileState.pending
    package var route: String?
    package var category: String?
    package var mediaType = "application/octet-stream"
    package var policy: FilePolicy
    package var code: ErrorCode?
    package var reason: String?
    package var content: ContentHash?
    package var admittedAt: WallTime
    package var endedAt: WallTime?
    package var finishedAt: WallTime?
    /// The disposition of the source: kept, archived to…, deleted, quarantined to…
    package var disposition: String?
    package var intent: [UInt8]?
    /// The batch of files that it belongs to.
    package var batchID: Int64?
    /// Its role in the batch, unless it is there for its own sake: `Companion.Kind`, or `unit_marker`.
    package var role: String?
    /// The route's labels at admission, overridden by those of its unit and its sidecar.
    package var labels: [String: String] = [:]
    /// Checksums of the content read at admission, where the route asked for any.
    package var digests: [Digest] = []
    /// Its removable volume (`Volume.key`).
    package var volume: String?
    /// Whether an unreadable part was left out: see `init(_:from:showing:)`.
    package var isDamaged = false

    /// The file's full path.
    package var fullPath: FilePath { root.pushing(path) }

    /// Whether it only marked its unit as complete.
    package var isUnitMarker: Bool { role == unitMarkerRole }
}

/// A row of `delivery`.
package struct DeliveryRow: Sendable, Equatable {
    package var id: Int64
    package var fileID: Int64
    package var afterID: Int64?
    package var destination: String
    package var key: String?
    package var fields: [String: String]
    package var state: DeliveryState
    package var attempts: Int
    package var nextAt: WallTime
    /// On the destination's uptime clock, in milliseconds; nil = never.
    package var expiresAt: Int64?
    package var code: ErrorCode?
    package var reason: String?
    package var proof: Proof?
    package var endedAt: WallTime?
    /// How often the destination has asked for time.
    package var waits: Int
    /// The batch that it reports as completely sent.
    package var closes: Int64?
    /// Its first claim; reset when a person retries it.
    package var startedAt: WallTime?
    /// How often the process ended while it was claimed, since it last came to an end.
    package var crashes: Int
    /// Its route's value at admission.
    package var priority = Priority.normal
    /// As for a file's row.
    package var isDamaged = false

    /// Whether the destination last answered that it is working on it. It does not expire then: the destination has its
    /// own limits, and work that it has begun may be paid for.
    package var isBeingWorkedOn: Bool { waits > 0 && code == nil }

    /// The opposite as SQL.
    static let isNotBeingWorkedOn = "(waits = 0 OR code IS NOT NULL)"

    /// Whether the destination has begun it, so that continuing starts nothing there. False after it lacked credits for
    /// the next step.
    package var hasBegun: Bool { waits > 0 && code != .outOfCredits }

    /// The key of its bytes; for a duplicate, the first one's.
    package var place: String? { key ?? (proof?.isLink == true ? proof?.key : nil) }

    /// Whether it waits for another delivery, its unit or its key in the fleet, rather than for a time.
    package var isHeld: Bool { state == .ready && nextAt.milliseconds >= Journal.never }
}

/// A file with its deliveries.
package struct Job: Sendable, Equatable {
    package var file: FileRow
    package var deliveries: [DeliveryRow]
    /// The reason that no decision may be based on it: part of it in the journal is unreadable.
    package var damage: String?
    /// Of deliveries of other files that some of these come after, where they matter for an order.
    var leaders: [Int64: DeliveryState] = [:]
    /// Whether a transfer of it still runs, or has left something to clean up.
    var isUnderWay = false
    /// Whether one of its deliveries waits for its key in the fleet.
    var asksForKey = false
    /// Whether it is work of a share, which goes by the fleet's word only.
    var isWork = false
    /// Whether this agent must claim that work again.
    var isWorkAwaited = false
    /// Whether a worker has it at hand, although it counts as waiting.
    package var isAtHand = false

    package init(file: FileRow, deliveries: [DeliveryRow]) { (self.file, self.deliveries) = (file, deliveries) }
}

extension FileRow {
    /// By position in `init(_:from:)`: looking up names takes longer than reading values.
    static let columns = names.joined(separator: ", ")
    /// The same where `delivery` is joined.
    static let qualified = names.map { "file." + $0 }.joined(separator: ", ")
    static let width = Int32(names.count)

    private static let names = [
        "id", "root", "path", "size", "modified", "changed", "inode", "device", "state", "route", "category",
        "media_type", "policy", "code", "reason", "content", "admitted_at", "ended_at", "finished_at", "disposition",
        "intent", "batch_id", "role", "labels", "digests", "volume",
    ]

    /// The full path of a row that may otherwise be unreadable.
    static func fullPath(_ row: SQLRow, from first: Int32) -> FilePath {
        row.path(first + 1).pushing(row.path(first + 2))
    }

    /// - Parameters:
    ///   - first: the position of `columns` in the row.
    ///   - showing: for display only: an unreadable part is left out, instead of hiding the rest.
    init(_ row: SQLRow, from first: Int32 = 0, showing: Bool = false) throws {
        id = row.integer(first)
        root = row.path(first + 1)
        path = row.path(first + 2)
        identity = row.identity(first + 3)
        state = row.text(first + 8).flatMap(FileState.init) ?? .failed
        route = row.text(first + 9)
        category = row.text(first + 10)
        mediaType = row.text(first + 11) ?? "application/octet-stream"
        policy =
            try row.note(first + 12, isWanted: true, showing, &isDamaged) { try FilePolicy(note: $0) }
            ?? FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy())
        code = row.text(first + 13).flatMap(ErrorCode.init)
        reason = row.text(first + 14)
        content = try row.note(first + 15, showing, &isDamaged) { try ContentHash(note: $0) }
        admittedAt = row.time(first + 16)
        endedAt = row.optionalTime(first + 17)
        finishedAt = row.optionalTime(first + 18)
        disposition = row.text(first + 19)
        intent = row.optionalBytes(first + 20)
        batchID = row.optionalInteger(first + 21)
        role = row.text(first + 22)
        labels = try row.note(first + 23, showing, &isDamaged) { try JSON.decode($0) } ?? [:]
        digests = try row.note(first + 24, showing, &isDamaged) { try [Digest](note: $0) } ?? []
        volume = row.text(first + 25)
    }
}

extension DeliveryRow {
    /// By position in `init(_:from:)`: looking up names takes longer than reading values.
    static let columns = names.joined(separator: ", ")
    /// The same where `file` is joined.
    static let qualified = names.map { "delivery." + $0 }.joined(separator: ", ")
    static let width = Int32(names.count)

    private static let names = [
        "id", "file_id", "after_id", "destination", "key", "fields", "state", "attempts", "next_at", "expires_at",
        "code", "reason", "proof", "ended_at", "waits", "closes", "started_at", "crashes", "priority",
    ]

    /// - Parameters: as for a file's row.
    init(_ row: SQLRow, from first: Int32 = 0, showing: Bool = false) throws {
        id = row.integer(first)
        fileID = row.integer(first + 1)
        afterID = row.optionalInteger(first + 2)
        destination = row.text(first + 3) ?? ""
        let key = row.text(first + 4)
        self.key = key
        fields = try row.note(first + 5, showing, &isDamaged) { try JSON.decode($0) } ?? [:]
        state = row.text(first + 6).flatMap(DeliveryState.init) ?? .failed
        attempts = row.int(first + 7)
        nextAt = row.time(first + 8)
        expiresAt = row.optionalInteger(first + 9)
        code = row.text(first + 10).flatMap(ErrorCode.init)
        reason = row.text(first + 11)
        proof = try row.note(first + 12, showing, &isDamaged) { try Proof(note: $0, of: key) }
        endedAt = row.optionalTime(first + 13)
        waits = row.int(first + 14)
        closes = row.optionalInteger(first + 15)
        startedAt = row.optionalTime(first + 16)
        crashes = row.int(first + 17)
        priority = Priority(rank: row.int(first + 18))
    }
}

extension SQLRow {
    /// A structured column; nil for NULL, unless `isWanted` demands a value.
    /// - Parameter isDamaged: set when an unreadable value was left out, which happens only when `showing`.
    fileprivate func note<Value>(
        _ column: Int32, isWanted: Bool = false, _ showing: Bool, _ isDamaged: inout Bool,
        _ decode: ([UInt8]) throws -> Value
    ) throws -> Value? {
        do {
            return try isWanted ? decode(bytes(column)) : optionalBytes(column).map(decode)
        } catch {
            guard showing else { throw error }
            isDamaged = true
            return nil
        }
    }
}

extension JSON {
    /// A structured column; nil, which becomes NULL, for an empty value.
    static func column(_ value: some Encodable & Collection) throws -> [UInt8]? {
        value.isEmpty ? nil : try encode(value)
    }
}

/// Rows to be inserted.
extension FileRow {
    init(_ arrival: FoundFile, route: String?, policy: FilePolicy, mediaType: String? = nil, at now: WallTime) {
        (root, path, identity, volume) = (arrival.root, arrival.path, arrival.identity, arrival.volume?.key)
        (self.route, self.policy, admittedAt) = (route, policy, now)
        if let mediaType { self.mediaType = mediaType }
    }

    init(_ admission: FileAdmission, at now: WallTime) {
        let (plan, rejection) = (admission.plan, admission.rejection)
        let policy = FilePolicy(
            onSuccess: plan?.onSuccess ?? .keep, onFailure: plan?.onFailure ?? rejection?.route.onFailure ?? .keep,
            retry: plan?.retry ?? RetryPolicy())
        let route = plan?.route ?? rejection?.route.name
        self.init(admission.arrival, route: route, policy: policy, mediaType: plan?.mediaType, at: now)
        guard let plan else {
            self.policy.receipts = rejection?.route.receipts ?? .none
            reject(rejection?.reason, rejection?.code ?? .rejected)
            return
        }
        (self.policy.receipts, self.policy.dedupe, self.policy.manifest) = (plan.receipts, plan.dedupe, plan.manifest)
        (self.policy.window, self.policy.ownLabels) = (plan.window, plan.ownLabels)
        (category, labels, digests) = (plan.category, plan.labels, plan.digests)
    }

    mutating func reject(_ reason: String?, _ code: ErrorCode = .rejected) {
        (state, endedAt) = (.rejected, admittedAt)
        (self.code, self.reason) = (reason == nil ? nil : code, reason)
    }
}

/// A new row of `delivery`, ready at its time.
struct NewDelivery {
    var file: Int64
    var after: Int64?
    var destination: String
    /// nil for a delivery that travels with another file and has no place of its own.
    var key: String?
    var fields: [String: String] = [:]
    var lane = Lane.small
    var priority = Priority.normal
    var nextAt: Int64
    var expiresAt: Int64?
    var closes: Int64?
}

extension Journal {
    /// The time of deliveries that do not wait for a time: the year 9999, in milliseconds.
    static let never: Int64 = 253_370_764_800_000

    static func insert(_ file: FileRow, _ database: Database) throws -> Int64 {
        let identity = file.identity
        try database.change(
            """
            INSERT INTO file (id, root, path, size, modified, changed, inode, device, state, route, category, media_type,
                policy, code, reason, content, admitted_at, ended_at, finished_at, disposition, batch_id, role, labels,
                digests, volume)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, file.id == 0 ? nil : file.id, file.root, file.path, identity.size, identity.modified, identity.changed,
            identity.inode, identity.device, file.state, file.route, file.category, file.mediaType,
            try file.policy.note, file.code, file.reason, file.content?.note, file.admittedAt,
            file.endedAt, file.finishedAt, file.disposition, file.batchID, file.role, try JSON.column(file.labels),
            try JSON.column(file.digests), file.volume)
        return database.lastInsertedRowID
    }

    static func insert(_ delivery: NewDelivery, _ database: Database) throws -> Int64 {
        try database.change(
            """
            INSERT INTO delivery
                (file_id, after_id, destination, key, fields, lane, state, next_at, expires_at, closes, priority)
            VALUES (?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?, ?)
            """, delivery.file, delivery.after, delivery.destination, delivery.key,
            try JSON.column(delivery.fields), delivery.lane, delivery.nextAt, delivery.expiresAt, delivery.closes,
            delivery.priority.rank)
        return database.lastInsertedRowID
    }
}

/// Big transfers have a worker each; files of at most one part share a destination's connections.
package enum Lane: Int, Sendable, CaseIterable {
    case small = 0
    case big = 1
}

/// A cache of values that are read and written repeatedly: every file has one of a configuration's few policies, and
/// JSON takes longer than the rest of a row.
private final class DecodeCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let known = Mutex<[Key: Value]>([:])

    func value(_ key: Key, _ make: (Key) throws -> Value) rethrows -> Value {
        if let value = known.withLock({ $0[key] }) { return value }
        let value = try make(key)
        known.withLock { known in
            // More than there are routes.
            if known.count >= 512 { known = [:] }
            known[key] = value
        }
        return value
    }
}

/// The disposal of a file after its deliveries, frozen at admission with the rest of the plan.
package struct FilePolicy: Sendable, Hashable, Codable {
    package var onSuccess: Route.OnSuccess
    package var onFailure: Route.OnFailure
    package var retry: RetryPolicy
    package var receipts = ReceiptLocation.none
    package var dedupe = DuplicateRule.off
    package var manifest: ManifestRule?
    package var window: DeliveryWindow?
    /// Labels from its sidecar, by name: its unit's labels do not replace them.
    package var ownLabels: Set<String> = []
    /// A person's answer about the source. An order to put it away is forgotten once it was carried out.
    package var answer: FileAnswer?
    /// Whether it is work of a share: the fleet says when its source may be disposed of.
    package var isOfPlace = false
}

extension FilePolicy {
    /// SQL for a file that was not sent, lies in its place, and was not left there by a person. The policy is JSON, in
    /// which a text cannot hold this. An index of the journal has this condition: a change needs a migration.
    static let isUnanswered = """
        state IN ('duplicate', 'rejected') AND finished_at IS NOT NULL AND \(Disposition.isKept)
            AND instr(policy, CAST('"answer":"left"' AS BLOB)) = 0
        """

    /// The same for a file that was left, for any answer, and for one to remove the file.
    static let isLeft = "instr(policy, CAST('\"answer\":\"left\"' AS BLOB)) > 0"
    static let isAnswered = "instr(policy, CAST('\"answer\":' AS BLOB)) > 0"
    static let isToBeRemoved = "instr(policy, CAST('\"answer\":\"removed\"' AS BLOB)) > 0"
    /// The same for work of a share.
    static let hasPlace = "instr(policy, CAST('\"place\":true' AS BLOB)) > 0"

    private static let notes = DecodeCache<FilePolicy, [UInt8]>()
    private static let policies = DecodeCache<[UInt8], FilePolicy>()

    /// The stored form.
    var note: [UInt8] { get throws { try Self.notes.value(self) { try JSON.encode($0) } } }

    init(note: [UInt8]) throws { self = try Self.policies.value(note) { try JSON.decode($0) } }

    /// nil for an unreadable policy, which is reported when its file's turn comes: until then it holds up nothing else.
    static func readable(_ note: [UInt8]) -> FilePolicy? {
        // It is read again, and the fault reported, when its file's turn comes.
        try? FilePolicy(note: note)
    }
}

/// Policies of earlier versions lack later keys; defaults are not written.
extension FilePolicy {
    private enum CodingKeys: String, CodingKey {
        case onSuccess, onFailure, retry, receipts, dedupe, manifest, window, answer
        case ownLabels = "own_labels"
        case isOfPlace = "place"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            onSuccess: try values.decode(Route.OnSuccess.self, forKey: .onSuccess),
            onFailure: try values.decode(Route.OnFailure.self, forKey: .onFailure),
            retry: try values.decode(RetryPolicy.self, forKey: .retry))
        receipts = try values.decodeIfPresent(ReceiptLocation.self, forKey: .receipts) ?? .none
        dedupe = try values.decodeIfPresent(DuplicateRule.self, forKey: .dedupe) ?? .off
        manifest = try values.decodeIfPresent(ManifestRule.self, forKey: .manifest)
        window = try values.decodeIfPresent(DeliveryWindow.self, forKey: .window)
        ownLabels = try values.decodeIfPresent(Set<String>.self, forKey: .ownLabels) ?? []
        // An answer of a later version, which this one cannot carry out, is none.
        answer = try values.decodeIfPresent(String.self, forKey: .answer).flatMap(FileAnswer.init)
        isOfPlace = try values.decodeIfPresent(Bool.self, forKey: .isOfPlace) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(onSuccess, forKey: .onSuccess)
        try values.encode(onFailure, forKey: .onFailure)
        try values.encode(retry, forKey: .retry)
        if receipts != .none { try values.encode(receipts, forKey: .receipts) }
        if dedupe != .off { try values.encode(dedupe, forKey: .dedupe) }
        try values.encodeIfPresent(manifest, forKey: .manifest)
        try values.encodeIfPresent(window, forKey: .window)
        if !ownLabels.isEmpty { try values.encode(ownLabels.sorted(), forKey: .ownLabels) }
        try values.encodeIfPresent(answer, forKey: .answer)
        if isOfPlace { try values.encode(true, forKey: .isOfPlace) }
    }
}

extension Proof {
    /// The stored form: JSON for `Codable`, written without an encoder because every delivery has one.
    var note: [UInt8] {
        var object = JSONLine()
        object.add("key", key)
        object.add("method", method.rawValue)
        object.add("size", size)
        if let content { object.add("content", content.object) }
        if let etag { object.add("etag", etag) }
        if let url { object.add("url", url) }
        if let address { object.add("address", address) }
        if let details { object.add("details", JSONLine(details)) }
        if let secrets { object.add("keepsakes", JSONLine(secrets.all)) }
        return object.finished
    }
}

extension ContentHash {
    /// The same for a content.
    var note: [UInt8] { object.finished }

    fileprivate var object: JSONLine {
        var sum = JSONLine()
        sum.add("algorithm", digest.algorithm.rawValue)
        sum.add("bytes", digest.bytes.map { Int64($0) })
        var object = JSONLine()
        object.add("digest", sum)
        if let partSize { object.add("partSize", partSize) }
        return object
    }
}

extension JSONLine {
    fileprivate init(_ texts: [String: String]) {
        self.init()
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) { add(name, text) }
    }
}
