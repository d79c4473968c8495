internal import NIOCore

/// Ends a connection whose other end takes too long: to say what it wants, or to take what it is told. A timer exists only
/// while something is waited for.
struct ConnectionDeadline: Sendable {
    let channel: any Channel
    /// For a request's body, once its head is there.
    var reading = TimeAmount.seconds(20)
    /// For an answer, or for one piece of a stream.
    var writing = TimeAmount.seconds(60)

    /// Until it is cancelled.
    func begin(_ time: TimeAmount) -> Scheduled<Void> {
        channel.eventLoop.scheduleTask(in: time) { [channel] in channel.close(promise: nil) }
    }
}
