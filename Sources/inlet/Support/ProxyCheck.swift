import InletConfig
import InletCore
import InletPipelines

/// `inlet check` of the way to each destination: through which proxy, why, and whether that lets us through.
enum ProxyCheck {
    static func run(_ config: LoadedConfig, _ factory: PipelineFactory, _ findings: inout Findings) async {
        var uses: [(name: String, use: ProxyUse)] = []
        for destination in config.settings.destinations {
            // What is wrong with it, its destination's own check says.
            guard let use = (try? factory.proxyUse(destination)).flatMap({ $0 }) else { continue }
            uses.append((destination.name, use))
        }
        // Where nobody has set any, one word is enough.
        guard uses.contains(where: { isNotable($0.use, config) }) else {
            if !uses.isEmpty { findings.add(.fine, "proxy", "none is set; every destination is reached directly") }
            return
        }
        for (name, use) in uses { await check(use, "destination \(name)", &findings) }
    }

    private static func isNotable(_ use: ProxyUse, _ config: LoadedConfig) -> Bool {
        if case .direct = use.choice { config.settings.proxy != nil } else { true }
    }

    private static func check(_ use: ProxyUse, _ name: String, _ findings: inout Findings) async {
        switch use.choice {
        case .direct(let why): findings.add(.fine, name, "is reached directly (\(why))")
        case .unusable(let why): findings.add(.wrong, name, why)
        case .by(let proxy, let why):
            do throws(DeliveryError) {
                try await use.connect()
                findings.add(.fine, name, "is reached through the proxy \(proxy) (\(why)), which answers")
            } catch {
                findings.add(.unavailable, name, "is to be reached through the proxy \(proxy) (\(why)): \(error)")
            }
        }
    }
}
