"""Relations of trainings on several workers, and of trainings that die and go on."""
