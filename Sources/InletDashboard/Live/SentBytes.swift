internal import InletAgent
internal import InletCore

/// How much of each running delivery has been counted, so that what is seen of it next is the rest. Pure.
struct SentBytes: Sendable {
    /// Bytes that left between two times.
    struct Share: Sendable, Equatable {
        var destination: String
        var count: Int64
        var since: WallTime
    }

    private struct Record {
        /// nil until the first look at one that goes on with what an earlier process or try sent.
        var counted: Int64?
        var size: Int64
        var at: WallTime
    }

    /// Many times what can run at once.
    static let most = 10_000

    private var records: [Int64: Record] = [:]

    /// What an event says of bytes that left.
    mutating func heard(_ event: AgentEvent, at now: WallTime) -> Share? {
        switch event {
        case .jobStarted(let ref, _, _, let size, let isPoll, let isResumed):
            if records.count >= Self.most { records = [:] }
            let counted: Int64? = isPoll ? size : isResumed || records[ref.delivery] != nil ? nil : 0
            records[ref.delivery] = Record(counted: counted, size: size, at: now)
            return nil
        case .transferProgress(let ref, let sent, _, _):
            return seen(sent, of: ref.delivery, to: ref.destination, at: now)
        case .jobWaiting(let ref, _, _, _):
            // Nothing of it is left to send.
            guard let size = records[ref.delivery]?.size else { return nil }
            return seen(size, of: ref.delivery, to: ref.destination, at: now)
        case .jobDelivered(let ref, let proof, _):
            defer { records[ref.delivery] = nil }
            guard proof.sameAs == nil, ![.registered, .adopted, .carried].contains(proof.method) else { return nil }
            return seen(proof.size, of: ref.delivery, to: ref.destination, at: now)
        case .jobRetry: return nil  // The next try may go on where this one ended.
        case .jobFailed(let ref, _, _):
            records[ref.delivery] = nil
            return nil
        default: return nil
        }
    }

    /// A delivery has sent so much by now.
    mutating func seen(_ sent: Int64, of delivery: Int64, to destination: String, at now: WallTime) -> Share? {
        guard let record = records[delivery] else { return nil }
        records[delivery]?.counted = max(sent, record.counted ?? 0)
        records[delivery]?.at = now
        guard let counted = record.counted, sent > counted else { return nil }
        return Share(destination: destination, count: sent - counted, since: record.at)
    }
}
