"""One beacon node in the words of the Beacon API: endpoints, models, events; imported by heads."""
