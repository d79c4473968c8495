import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage

// Words for what files, plans and proofs the tests need, and for what they see of them.

extension FileIdentity {
    static func test(
        size: Int64 = 10, modified: Int64 = 1, changed: Int64 = 1, inode: UInt64 = 1, device: UInt64 = 1
    ) -> FileIdentity {
        FileIdentity(size: size, modified: modified, changed: changed, inode: inode, device: device)
    }
}

extension FoundFile {
    static func test(_ name: String, _ identity: FileIdentity = .test()) -> FoundFile {
        FoundFile(root: "/in", path: FilePath(name), identity: identity)
    }
}

extension FileAdmission {
    static func test(
        _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["r2"], key: String? = nil,
        lane: Lane = .big, expire: Duration? = nil, uptime: Int64 = 0, unit: FilePath? = nil,
        companions: [CompanionAdmission] = []
    ) -> FileAdmission {
        let plan = Plan(
            route: "all", category: "other", key: key ?? name, mediaType: "text/plain", destinations: destinations,
            retry: RetryPolicy(expire: expire))
        var admission = FileAdmission(
            .test(name, identity), plan: plan, lanes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, lane) }),
            uptimes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, uptime) }))
        (admission.unit, admission.companions) = (unit, companions)
        return admission
    }

    static func refused(_ name: String, _ reason: String = "too large", unit: FilePath? = nil) -> FileAdmission {
        var admission = FileAdmission(.test(name), rejectedBy: Route(name: "all", to: ["r2"]), reason: reason)
        admission.unit = unit
        return admission
    }

    /// - Parameter content: what the file holds; equal numbers are equal contents.
    static func content(
        _ content: UInt8, _ name: String, _ rule: DuplicateRule, to destinations: [String] = ["r2"], size: Int64 = 10
    ) -> FileAdmission {
        var admission = FileAdmission.test(name, .test(size: size), to: destinations)
        admission.plan?.dedupe = rule
        admission.plan?.digests = [.content(content)]
        return admission
    }
}

extension CompanionAdmission {
    /// - Parameter destinations: those that store it.
    static func test(
        _ name: String, _ kind: Companion.Kind = .sameStem, _ identity: FileIdentity = .test(),
        storedBy destinations: [String] = ["r2"], lane: Lane = .big
    ) -> CompanionAdmission {
        let ending = String(name.split(separator: ".").last ?? "")
        return CompanionAdmission(
            .test(name, identity), Companion(path: FilePath(name), kind: kind, ending: ending), category: "other",
            mediaType: "text/plain", lanes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, lane) }))
    }
}

extension Digest {
    static func content(_ number: UInt8) -> Digest { Digest(.sha256, [UInt8](repeating: number, count: 32)) }
}

extension ClaimCapacity {
    static func test(_ destination: String = "r2", _ limit: Int = 100) -> ClaimCapacity {
        ClaimCapacity(destination: destination, limits: [.small: limit, .big: limit])
    }
}

extension ClaimOutcome {
    static func test(_ state: DeliveryState) -> ClaimOutcome {
        state == .delivered
            ? .delivered(.test()) : .ended(state, code: .internalFault, reason: "the test says \(state.rawValue)")
    }

    static func again(_ time: WallTime = Bench.start, counts: Bool = false) -> ClaimOutcome {
        .again(at: time, countsAttempt: counts, code: .timedOut, reason: "slow")
    }
}

extension Proof {
    static func test(_ key: String = "k") -> Proof {
        Proof(
            key: key, size: 10, method: .md5Parts,
            content: ContentHash(digest: Digest(.md5, [1, 2, 3]), partSize: nil))
    }
}

extension Job {
    /// Without what nobody asks of a delivery that has ended: when it would have been due.
    var lasting: Job {
        var job = self
        for index in job.deliveries.indices where job.deliveries[index].state.isFinal {
            job.deliveries[index].nextAt = WallTime(milliseconds: 0)
        }
        return job
    }
}

extension Journal {
    /// The same as `queueCounts`, found by looking at every delivery.
    func countedQueue() async throws -> [String: QueueCounts] {
        var counts: [String: QueueCounts] = [:]
        let deliveries = try await jobs(FileFilter(limit: 1_000_000)).flatMap { job in
            job.deliveries.map { ($0, job.file.admittedAt) }
        }
        for (delivery, admittedAt) in deliveries.sorted(by: { $0.0.id < $1.0.id }) {
            counts[delivery.destination, default: QueueCounts()].note(delivery, admittedAt)
        }
        return counts.filter { $0.value != QueueCounts() }
    }
}

extension QueueCounts {
    fileprivate mutating func note(_ delivery: DeliveryRow, _ admittedAt: WallTime) {
        switch delivery.state {
        case .parked: parked += 1
        case .claimed: claimed += 1
        case .ready where delivery.isHeld: held += 1
        case .ready where delivery.isBeingWorkedOn: working += 1
        case .ready:
            waiting += 1
            if delivery.code != nil { retrying += 1 }
            oldest = oldest ?? admittedAt
        default: break
        }
    }
}

/// How the files of a volume stand, as the journal knows them.
struct VolumeStanding: Equatable {
    var proved = 0
    var bytes: Int64 = 0
    var unproved: [FilePath] = []
}

extension Journal {
    /// nil while the volume must stay in. In pages of one, so that all of them are met.
    func standing(of volume: String, proofs: Int? = nil) async throws -> VolumeStanding? {
        guard try await mayLeave(volume, proofs: proofs) else { return nil }
        var (standing, last) = (VolumeStanding(), FilePath())
        while let file = try await files(of: volume, proofs: proofs, after: last, limit: 1).first {
            last = file.path
            if file.isDelivered {
                standing.proved += 1
                standing.bytes += file.identity.size
            } else {
                standing.unproved.append(file.path)
            }
        }
        return standing
    }
}
