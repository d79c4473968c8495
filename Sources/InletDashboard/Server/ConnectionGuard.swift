internal import InletCore
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// Limits the connections of each address, so that none can take all of them.
final class ConnectionLimiter: Sendable {
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

/// Counts a connection, closes it when its address has too many, and adds the filters for its requests. One instance
/// for each connection.
final class ConnectionGuard: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Never

    private let limiter: ConnectionLimiter
    private let refusesOldProtocol: Bool
    private var isKnown = false

    init(_ limiter: ConnectionLimiter, refusesOldProtocol: Bool) {
        self.limiter = limiter
        self.refusesOldProtocol = refusesOldProtocol
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            let pipeline = context.pipeline.syncOperations
            if refusesOldProtocol { try pipeline.addHandler(OldProtocolFilter(), position: .first) }
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(TargetHostFilter(), position: .after(decoder))
        } catch {
            // Nothing arrives unfiltered.
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
        guard limiter.enter(network) else { return context.close(promise: nil) }
        context.channel.closeFuture.whenComplete { [limiter] _ in limiter.leave(network) }
    }
}

@available(*, unavailable)
extension ConnectionGuard: Sendable {}

/// Refuses HTTP/1.0 where no secret is set. No browser and hardly any program speaks it, but nginx as a proxy does by
/// default, without a header that reveals it. Behind such a proxy the whole network would have full access. One
/// instance for each connection, before the HTTP decoder.
final class OldProtocolFilter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The part of the first line that has arrived; nil once it is complete.
    private var line: [UInt8]? = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let before = line else { return context.fireChannelRead(data) }
        let bytes = before + Array(unwrapInboundIn(data).readableBytesView.prefix(Self.longest))
        let end = bytes.firstIndex(of: 0x0A)
        line = end == nil && bytes.count < Self.longest ? bytes : nil
        if let end, Self.isRefused(bytes[..<end]) {
            context.writeAndFlush(wrapOutboundOut(Self.refusal), promise: nil)
            return context.close(promise: nil)
        }
        context.fireChannelRead(data)
    }

    /// The most bytes of a line examined: as much as a whole head may have.
    private static let longest = 16 << 10

    /// Health checks may use any version.
    static func isRefused(_ line: some Collection<UInt8>) -> Bool {
        let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0.isNewline }
        guard words.count == 3, words[2] == "HTTP/1.0" else { return false }
        return words[1] != "/healthz" && words[1] != "/readyz"
    }

    private static let refusal: ByteBuffer = {
        let fault = APIFault(
            403, "proxy",
            "refused: HTTP/1.0 suggests a proxy, through which anybody would have full access; set dashboard.token or dashboard.password"
        )
        let head = """
            HTTP/1.1 403 Forbidden\r
            Content-Type: application/json; charset=utf-8\r
            Content-Length: \(fault.body.count)\r
            Cache-Control: no-store\r
            X-Content-Type-Options: nosniff\r
            Connection: close\r
            \r

            """
        return ByteBuffer(bytes: Array(head.utf8) + fault.body)
    }()
}

@available(*, unavailable)
extension OldProtocolFilter: Sendable {}

/// Makes the host in a request's target (`GET http://host/path HTTP/1.1`; RFC 9112, 3.2.2) count like the header's. A
/// proxy in between routes by it, and the decoder behind this drops it. One instance for each connection.
final class TargetHostFilter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        context.fireChannelRead(wrapInboundOut(.head(Self.judged(head))))
    }

    /// The same request with only its path where target and header agree; otherwise one with two hosts, which is
    /// refused.
    static func judged(_ head: HTTPRequestHead) -> HTTPRequestHead {
        if head.uri.hasPrefix("/") || head.uri == "*" || head.method == .CONNECT { return head }
        var head = head
        let rest = head.uri.firstRange(of: "://").map { head.uri[$0.upperBound...] } ?? ""
        let authority = rest.prefix { !"/?#".contains($0) }
        if head.headers["Host"].map({ $0.lowercased() }) == [authority.lowercased()] {
            let path = rest.dropFirst(authority.count)
            head.uri = path.hasPrefix("/") ? String(path) : "/" + path
        } else {
            head.headers.add(name: "Host", value: String(authority))
        }
        return head
    }
}

@available(*, unavailable)
extension TargetHostFilter: Sendable {}
