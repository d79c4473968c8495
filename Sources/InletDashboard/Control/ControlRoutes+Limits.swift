internal import Foundation
internal import Hummingbird
internal import InletCore
internal import NIOCore

extension ControlRoutes {
    func addLimits(_ api: RouterGroup<ControlContext>) {
        api.get("limits") { _, _ in try await JSONAnswer(control.limits()) }
        api.post("limits") { request, _ in
            let wish = try await JSONDecoder().decode(
                LimitWish.self, from: Data(request.body.collect(upTo: 1 << 16).readableBytesView))
            return try await JSONAnswer(control.limit(wish))
        }
    }
}
