internal import Foundation
internal import Hummingbird
internal import InletCore
internal import NIOCore
internal import SystemPackage

/// What `send` posts; the paths as bytes, because names need not be text.
struct SendOrder: Codable, Sendable {
    /// Files of one request.
    static let most = 256
    /// Room for as many of the longest paths, in base64.
    static let mostBytes = 2 << 20

    var paths: [Data]
    var to: String?
}

extension ControlRoutes {
    func addSending(_ api: RouterGroup<ControlContext>) {
        api.post("send") { request, _ in
            let order = try await JSONDecoder().decode(
                SendOrder.self, from: Data(request.body.collect(upTo: SendOrder.mostBytes).readableBytesView))
            return try await JSONAnswer(control.send(order.paths.map { FilePath(bytes: Array($0)) }, to: order.to))
        }
        // Asked for by POST, because there can be many numbers; it changes nothing.
        api.post("follow") { request, _ in
            let jobs = try await JSONDecoder().decode(
                [Int64].self, from: Data(request.body.collect(upTo: 1 << 16).readableBytesView))
            return try await JSONAnswer(control.follow(jobs))
        }
    }
}
