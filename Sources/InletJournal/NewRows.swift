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
        try database.cachedStatement(
            sql: """
                INSERT INTO file (root, path, size, modified, changed, inode, device, state, route, category,
                    media_type, policy, code, reason, admitted_at, ended_at, batch_id, role)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            Data(file.arrival.root.bytes), Data(file.arrival.path.bytes), identity.size, identity.modified,
            identity.changed, Int64(bitPattern: identity.inode), Int64(bitPattern: identity.device),
            file.state.rawValue, file.route, file.category, file.mediaType, try JournalJSON.encode(file.policy),
            file.code?.rawValue, file.reason, now.milliseconds, file.state.isFinal ? now.milliseconds : nil,
            file.batch, file.role,
        ])
        return database.lastInsertedRowID
    }

    static func insert(_ delivery: NewDelivery, _ database: Database) throws -> Int64 {
        try database.cachedStatement(
            sql: """
                INSERT INTO delivery (
                    file_id, after_id, destination, key, fields, lane, state, next_at, expires_at, closes)
                VALUES (?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?)
                """
        ).execute(arguments: [
            delivery.file, delivery.after, delivery.destination, delivery.key,
            delivery.fields.isEmpty ? nil : try JournalJSON.encode(delivery.fields),
            delivery.lane.rawValue, delivery.nextAt, delivery.expiresAt, delivery.closes,
        ])
        return database.lastInsertedRowID
    }
}
