package import Foundation
import Hummingbird

/// What may be asked of a `ReportServer`.
package enum ReportOperation: String, SandboxOperation { case report }

/// A port on 127.0.0.1 that answers `GET /` with what other sandboxes have received, for programs that judge it from
/// another process. Everything else is answered 404.
package final class ReportServer: LoopbackSandbox {
    package let server: SandboxServer<ReportOperation>

    /// - Parameters:
    ///   - port: 0 = one that the system chooses.
    ///   - report: A JSON document, made anew for each request; what it throws is answered 500.
    package init(port: Int = 0, _ report: @escaping @Sendable () throws -> Data) {
        let row = SandboxRoute<ReportOperation>("GET /", .report) { _ in
            do {
                return Response(
                    SandboxReply(200, type: "application/json", body: String(decoding: try report(), as: UTF8.self)))
            } catch {
                throw SandboxReply(500, body: "\(error)\n")
            }
        }
        server = SandboxServer(
            port: port, SandboxRouter(.none, [row]) { refusal, _ in SandboxReply(refusal.status, body: "") })
    }
}
