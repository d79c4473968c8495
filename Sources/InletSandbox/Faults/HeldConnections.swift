import NIOCore
import Synchronization

/// Connections that a fault keeps open or slow: the end of the fault or of the sandbox closes them.
final class HeldConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isClosing = false
    }

    private let state = Mutex(State())

    /// From here on `channel` may be closed from outside.
    func add(_ channel: any Channel) {
        let isClosing = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.isClosing
        }
        if isClosing { channel.close(promise: nil) }
    }

    func remove(_ channel: any Channel) {
        _ = state.withLock { $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    /// Returns when the client, a test or the end of the sandbox has closed `channel`.
    static func waitForClose(of channel: any Channel) async throws {
        // A half-closed connection of a client that has gone would be held for ever.
        // One that has closed meanwhile is not held at all.
        try? await channel.setOption(ChannelOptions.allowRemoteHalfClosure, value: false).get()
        let (closed, end) = AsyncStream.makeStream(of: Never.self)
        channel.closeFuture.whenComplete { _ in end.finish() }
        for await _ in closed {}
    }

    func closeAll() {
        let channels = state.withLock { Array($0.channels.values) }
        for channel in channels { channel.close(promise: nil) }
    }

    /// Closes all, and those that come from here on at once.
    func closeForGood() {
        state.withLock { $0.isClosing = true }
        closeAll()
    }
}

/// Ends a request whose socket a fault has closed; no answer can be written any more.
struct ConnectionDropped: Error {}
