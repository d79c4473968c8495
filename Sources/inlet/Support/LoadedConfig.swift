import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

extension LoadedConfig {
    /// Who is told what happens, ready to be told. Prints what cannot be used, with its place, and exits with 78.
    func makeOutlets(_ factory: PipelineFactory) throws -> Outlets {
        do throws(ConfigErrors) {
            return try tryOutlets(factory)
        } catch {
            Console.printError("\(error)")
            throw ExitStatus.configuration
        }
    }

    /// The same, saying nothing.
    func tryOutlets(_ factory: PipelineFactory) throws(ConfigErrors) -> Outlets {
        var outlets = Outlets()
        var faults: [ConfigError] = []
        for receiver in settings.notify {
            do throws(SettingFault) {
                outlets.webhooks[receiver.name] = try factory.webhook(receiver)
            } catch {
                let position = receiver.positions[error.key] ?? receiver.position
                faults.append(self.error(at: position, "'\(error.key)' \(error.message)"))
            }
        }
        if let ping = settings.ping {
            do throws(SettingFault) {
                outlets.ping = try factory.ping(ping)
            } catch {
                faults.append(self.error(at: ping.position, "'\(error.key)' \(error.message)"))
            }
        }
        guard faults.isEmpty else { throw ConfigErrors(list: faults) }
        return outlets
    }
}

/// `inlet check` of those who are told what happens. Nobody is told anything: a test notice is sent only when asked for.
enum ReceiverCheck {
    static func run(_ receivers: [NotifySettings], _ outlets: Outlets, _ findings: inout Findings) {
        for receiver in receivers {
            let what = "notify \(receiver.name)"
            switch receiver.receiver {
            case .webhook:
                let host = outlets.webhooks[receiver.name]?.host ?? ""
                findings.add(
                    .fine, what, "\(host) is told by POST; not tried, 'inlet notify test \(receiver.name)' does that")
            case .exec(let words):
                let program = FilePath(words.first ?? "")
                if ChildProcess.isExecutable(program) {
                    findings.add(.fine, what, "\(program.display) can be run")
                } else {
                    findings.add(
                        .wrong, what,
                        "\(program.display) is not there, or user \(ProcessSetup.userID) may not run it",
                        remedy: "put it there, and: chmod +x \(program.display)")
                }
            }
        }
    }
}
