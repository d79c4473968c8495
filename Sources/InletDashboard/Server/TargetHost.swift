internal import NIOCore
internal import NIOHTTP1

/// Has the host that a request's target names judged like the header's (`GET http://host/path HTTP/1.1`; RFC 9112, 3.2.2):
/// whoever stands in between goes by it, and what reads requests after this drops it. One is made for each connection.
final class TargetHost: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        context.fireChannelRead(wrapInboundOut(.head(Self.judged(head))))
    }

    /// The same request for its path alone where target and header agree; otherwise it names two hosts, which no gate lets in.
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
extension TargetHost: Sendable {}
