internal import Foundation
internal import Hummingbird
internal import InletCore
internal import NIOCore

extension ControlRoutes {
    func addLog(_ api: RouterGroup<ControlContext>) {
        api.get("log/level") { _, _ in
            guard let report = control.logLevel() else { throw HTTPError(.notFound) }
            return JSONAnswer(report)
        }
        api.post("log/level") { request, context in
            let wish = try await JSONDecoder().decode(
                LogLevelWish.self, from: Data(request.body.collect(upTo: 1 << 16).readableBytesView))
            return JSONAnswer(control.acting(for: await Self.asker(context)).setLogLevel(wish))
        }
    }
}
