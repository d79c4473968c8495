internal import InletCore
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// How many connections each address has: no single one can have all that there may be.
final class ConnectionBook: Sendable {
    private let most: Int
    private let counts = Mutex<[[UInt8]: Int]>([:])

    init(most: Int) { self.most = most }

    /// - Returns: false where it has as many as it may.
    func enter(_ network: [UInt8]) -> Bool {
        counts.withLock { counts in
            let count = counts[network, default: 0]
            guard count < most else { return false }
            counts[network] = count + 1
            return true
        }
    }

    func leave(_ network: [UInt8]) {
        counts.withLock { counts in
            let count = counts[network, default: 1] - 1
            counts[network] = count == 0 ? nil : count
        }
    }
}

/// Writes a connection down in the book, closes it where its address has enough of them, and has what comes on it judged. One is made for each connection.
final class PeerBound: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Never

    private let book: ConnectionBook
    private let refusesOldProtocol: Bool
    private var isKnown = false

    init(_ book: ConnectionBook, refusesOldProtocol: Bool) {
        self.book = book
        self.refusesOldProtocol = refusesOldProtocol
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            let pipeline = context.pipeline.syncOperations
            if refusesOldProtocol { try pipeline.addHandler(OldProtocolBound(), position: .first) }
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(TargetHost(), position: .after(decoder))
        } catch {
            // Nothing comes in unjudged.
            return context.close(promise: nil)
        }
        if context.channel.isActive { enter(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        enter(context)
        context.fireChannelActive()
    }

    private func enter(_ context: ChannelHandlerContext) {
        guard !isKnown else { return }
        isKnown = true
        let network = context.channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }?.network ?? []
        guard book.enter(network) else { return context.close(promise: nil) }
        context.channel.closeFuture.whenComplete { [book] _ in book.leave(network) }
    }
}

@available(*, unavailable)
extension PeerBound: Sendable {}
