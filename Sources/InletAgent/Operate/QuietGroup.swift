internal import Logging
package import ServiceLifecycle

extension ServiceGroup {
    /// A group that says nothing in anybody's log.
    ///
    /// Services are named by their types: left to itself a group makes a dump of all that each one holds, and keeps it.
    package init(quietly services: [any Service]) {
        let logger = Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
        let configured = services.map { service in
            ServiceGroupConfiguration.ServiceConfiguration(
                service: service, serviceName: String(describing: type(of: service)))
        }
        self.init(configuration: ServiceGroupConfiguration(services: configured, logger: logger))
    }
}
