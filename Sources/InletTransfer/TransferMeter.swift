import Synchronization

/// Bytes of one delivery that its sockets have taken, summed over all its parts.
///
/// `HTTPClient` adds while it sends and takes a request's bytes back when the request does not end with a 2xx answer or
/// curl starts it anew, so the sum never counts a byte twice.
package final class TransferMeter: Sendable {
    private let sent = Atomic<Int64>(0)
    private let started = Atomic<Bool>(false)

    package init() {}

    package var bytesSent: Int64 { sent.load(ordering: .relaxed) }

    /// Adds `count` bytes, e.g. those of parts that an earlier run has proved; negative takes back.
    package func add(_ count: Int64) {
        if count > 0 { started.store(true, ordering: .relaxed) }
        sent.add(count, ordering: .relaxed)
    }

    /// Whether any byte has ever been counted, also one that was taken back.
    package var hasStarted: Bool { started.load(ordering: .relaxed) }
}
