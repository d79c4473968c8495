internal import Foundation
internal import GRDB
internal import InletCore

/// A row of `file` to be.
struct NewFile {
    var arrival: Arrival
    var state = FileState.pending
    var route: String?
    var category: String?
    var mediaType: String?
    var policy: FilePolicy
    var code: ErrorCode?
    var reason: String?
    var batch: Int64?
    var role: String?
    var labels: [String: String] = [:]
    var digests: [Digest] = []

    init(_ arrival: Arrival, route: String?, policy: FilePolicy) {
        self.arrival = arrival
        self.route = route
        self.policy = policy
    }

    init(_ admission: Admission) {
        self.init(
            admission.arrival, route: admission.plan?.route ?? admission.rejection?.route.name,
            policy: FilePolicy(
                onSuccess: admission.plan?.onSuccess ?? .keep,
                onFailure: admission.plan?.onFailure ?? admission.rejection?.route.onFailure ?? .keep,
                retry: admission.plan?.retry ?? RetryPolicy()))
        if let plan = admission.plan {
            (policy.receipts, policy.dedupe, policy.manifest) = (plan.receipts, plan.dedupe, plan.manifest)
            policy.window = plan.window
            (labels, digests, policy.ownLabels) = (plan.labels, plan.digests, plan.ownLabels)
        } else if let route = admission.rejection?.route {
            policy.receipts = route.receipts
        }
        category = admission.plan?.category
        mediaType = admission.plan?.mediaType
        if admission.plan == nil { reject(admission.rejection?.reason, admission.rejection?.code ?? .rejected) }
    }

    mutating func reject(_ reason: String?, _ code: ErrorCode = .rejected) {
        state = .rejected
        self.code = reason == nil ? nil : code
        self.reason = reason
    }
}

/// A row of `delivery` to be; ready, at its time.
struct NewDelivery {
    var file: Int64
    var after: Int64?
    var destination: String
    /// nil for what goes with another file and has no place of its own.
    var key: String?
    var fields: [String: String] = [:]
    var lane = Lane.small
    var priority = Priority.normal
    var nextAt: Int64
    var expiresAt: Int64?
    var closes: Int64?

    init(file: Int64, destination: String, nextAt: Int64) {
        self.file = file
        self.destination = destination
        self.nextAt = nextAt
    }
}

extension Journal {
    /// The time of what waits for something else than time: the year 9999, in milliseconds.
    static let never: Int64 = 253_370_764_800_000

    static func insert(_ file: NewFile, _ now: WallTime, _ database: Database) throws -> Int64 {
        let identity = file.arrival.identity
        try database.change(
            """
            INSERT INTO file (root, path, size, modified, changed, inode, device, state, route, category,
                media_type, policy, code, reason, admitted_at, ended_at, batch_id, role, labels, digests, volume)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .bytes(file.arrival.root.bytes), .bytes(file.arrival.path.bytes), .integer(identity.size),
            .integer(identity.modified), .integer(identity.changed), .integer(Int64(bitPattern: identity.inode)),
            .integer(Int64(bitPattern: identity.device)), .text(file.state.rawValue), SQLValue(file.route),
            SQLValue(file.category), SQLValue(file.mediaType), .bytes(try PolicyNotes.shared.note(file.policy)),
            SQLValue(file.code?.rawValue), SQLValue(file.reason), .integer(now.milliseconds),
            file.state.isFinal ? .integer(now.milliseconds) : .null, SQLValue(file.batch), SQLValue(file.role),
            file.labels.isEmpty ? .null : .bytes(try JournalJSON.encode(file.labels)),
            file.digests.isEmpty ? .null : .bytes(try JournalJSON.encode(file.digests)),
            SQLValue(file.arrival.volume?.key))
        return database.lastInsertedRowID
    }

    static func insert(_ delivery: NewDelivery, _ database: Database) throws -> Int64 {
        try database.change(
            """
            INSERT INTO delivery
                (file_id, after_id, destination, key, fields, lane, state, next_at, expires_at, closes, priority)
            VALUES (?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?, ?)
            """,
            .integer(delivery.file), SQLValue(delivery.after), .text(delivery.destination), SQLValue(delivery.key),
            delivery.fields.isEmpty ? .null : .bytes(try JournalJSON.encode(delivery.fields)),
            .integer(Int64(delivery.lane.rawValue)), .integer(delivery.nextAt), SQLValue(delivery.expiresAt),
            SQLValue(delivery.closes), .integer(Int64(delivery.priority.rank)))
        return database.lastInsertedRowID
    }
}
