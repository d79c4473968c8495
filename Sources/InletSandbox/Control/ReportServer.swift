package import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle

/// A port on 127.0.0.1 that answers `GET /` with what other sandboxes have received, for programs that judge it from
/// another process. Everything else is answered 404.
package final class ReportServer: Service {
    private let server: LoopbackServer
    private let report: @Sendable () throws -> Data

    /// - Parameters:
    ///   - port: 0 = one that the system chooses.
    ///   - report: A JSON document, made anew for each request; what it throws is answered 500.
    package init(port: Int = 0, _ report: @escaping @Sendable () throws -> Data) {
        server = LoopbackServer(port: port, held: HeldConnections())
        self.report = report
    }

    /// The port, once it is bound; throws `SandboxStopped` when `run` ended before.
    package func port() async throws -> Int { try await server.port() }

    /// Serves until the task is cancelled or a graceful shutdown begins. Call it once.
    package func run() async throws { try await server.run(ReportResponder(report: report)) }
}

private struct ReportResponder: HTTPResponder {
    let report: @Sendable () throws -> Data

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        guard request.method == .get, request.uri.path == "/" else { return Response(status: .notFound) }
        do {
            return Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: try report())))
        } catch {
            return Response(
                status: .internalServerError, body: ResponseBody(byteBuffer: ByteBuffer(string: "\(error)\n")))
        }
    }
}
