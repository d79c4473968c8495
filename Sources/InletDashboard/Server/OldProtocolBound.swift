internal import InletCore
internal import NIOCore

/// Refuses connections that begin in HTTP/1.0, where no secret is set. No browser and hardly a program speaks it, but a proxy
/// does that adds nothing by which it could be known (nginx as it comes), and behind it the whole network would have full
/// access. One is made for each connection, before whatever understands HTTP.
final class OldProtocolBound: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What came of the first line; nil once it is known.
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

    /// Bytes of a line that is looked at: as much as a whole head may have.
    private static let longest = 16 << 10

    /// Watchers of all ages may ask whether we live.
    static func isRefused(_ line: some Collection<UInt8>) -> Bool {
        let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0.isNewline }
        guard words.count == 3, words[2] == "HTTP/1.0" else { return false }
        return words[1] != "/healthz" && words[1] != "/readyz"
    }

    private static let refusal: ByteBuffer = {
        let fault = APIFault(
            403, "proxy",
            "refused: it is HTTP/1.0, as proxies speak it, and without a secret whoever reaches that might do everything; give dashboard a token or a password"
        )
        // Two texts are always JSON; without them the status says as much.
        let body = (try? JSONValue.bytes(of: ErrorReport(error: fault.code, message: fault.message))) ?? []
        let head = """
            HTTP/1.1 403 Forbidden\r
            Content-Type: application/json; charset=utf-8\r
            Content-Length: \(body.count)\r
            Cache-Control: no-store\r
            X-Content-Type-Options: nosniff\r
            Connection: close\r
            \r

            """
        return ByteBuffer(bytes: Array(head.utf8) + body)
    }()
}

@available(*, unavailable)
extension OldProtocolBound: Sendable {}
